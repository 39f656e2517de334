from __future__ import annotations

from typing import Any

import anyio
import pytest

from agentdouble.server.forwarded_prefix import Forwarded
from agentdouble.server.protocols import PEER


def below(*prefixes: str, peer: str = "127.0.0.1") -> tuple[str, str]:
    """Return the root and the path that an application sees."""
    scopes: list[Any] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        scopes.append((scope.get("root_path", ""), scope["path"]))

    headers = [(b"x-forwarded-prefix", prefix.encode()) for prefix in prefixes]
    scope = {"type": "http", "path": "/x", "headers": headers, PEER: (peer, 1)}
    anyio.run(Forwarded(app), scope, None, None)
    [result] = scopes
    return result


def test_an_application_is_mounted_below_the_gateway_prefix() -> None:
    """As in ASGI, the path includes it."""
    assert ("/runtimes/one", "/runtimes/one/x") == below("/runtimes/one")


@pytest.mark.parametrize("prefix", ["", "/", "one", "//evil", "/a b", "/a?b", "https://evil"])
def test_invalid_prefixes_are_ignored(prefix: str) -> None:
    """So are repeated ones and those from another machine."""
    assert ("", "/x") == below(prefix)
    assert ("", "/x") == below("/a", "/b")
    assert ("", "/x") == below("/a", peer="192.0.2.1")
