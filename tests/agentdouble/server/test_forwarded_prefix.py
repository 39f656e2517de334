from __future__ import annotations

from typing import Any

import anyio
import pytest

from agentdouble.server.forwarded_prefix import Forwarded
from agentdouble.server.protocols import PEER


def below(*prefixes: str, peer: str = "127.0.0.1") -> tuple[str, str]:
    """Return root and path as an application sees them."""
    scopes: list[Any] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        scopes.append((scope.get("root_path", ""), scope["path"]))

    headers = [(b"x-forwarded-prefix", prefix.encode()) for prefix in prefixes]
    scope = {"type": "http", "path": "/x", "headers": headers, PEER: (peer, 1)}
    anyio.run(Forwarded(app), scope, None, None)
    [result] = scopes
    return result


def test_an_application_is_below_the_prefix_of_its_gateway() -> None:
    """As ASGI has it: the path includes it."""
    assert ("/runtimes/one", "/runtimes/one/x") == below("/runtimes/one")


@pytest.mark.parametrize("prefix", ["", "/", "one", "//evil", "/a b", "/a?b", "https://evil"])
def test_what_is_no_prefix_is_not_believed(prefix: str) -> None:
    """Nor are two of them, or one that comes from another machine."""
    assert ("", "/x") == below(prefix)
    assert ("", "/x") == below("/a", "/b")
    assert ("", "/x") == below("/a", peer="192.0.2.1")
