from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import http
from tests.agentdouble.runtimes.authentication.issuer import Issuer

MIRROR = Path(__file__).parents[1] / "applications" / "mirror.py"
KEYS = [{"name": "ann", "secret": "key-of-ann"}, {"name": "bob", "secret": "key-of-bob"}]


def mirror(name: str, authorizer: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the table of a runtime that echoes its requests."""
    table: dict[str, Any] = {"name": name, "command": [sys.executable, "-S", str(MIRROR)]}
    return table if authorizer is None else {**table, "authorizer": dict(authorizer)}


class Caller:
    """A client of one of the double's runtimes."""

    def __init__(self, double: Emulator, runtime: str) -> None:
        self.base = f"{double.url}/runtimes/{runtime}"

    def ask(
        self, path: str = "/invoke", bearer: str | None = None, /, method: str = "POST", **more: Any
    ) -> httpx.Response:
        """Send a request, with a bearer if given."""
        headers = [("Authorization", f"Bearer {bearer}")] if bearer else []
        headers += list(dict(more.pop("headers", {})).items())
        return http.request(method, self.base + path, headers=headers, **more)

    def echo(self, *args: Any, **more: Any) -> dict[str, Any]:
        """Send a request that is accepted, and return what the application received."""
        answer = self.ask(*args, **more)
        assert 200 == answer.status_code, answer.text
        body: dict[str, Any] = answer.json()
        return body


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    yield issuer
    issuer.close()


@pytest.fixture(scope="module")
def double(issuer: Issuer) -> Iterator[Emulator]:
    """A double with runtimes that require keys, tokens, or nothing."""
    url = issuer.discovery_url
    tables = [
        mirror("open"),
        mirror("keyed", {"keys": KEYS}),
        mirror("queried", {"keys": KEYS, "location": "Query", "name": "key"}),
        mirror("named", {"keys": KEYS, "name": "X-Secret-Word"}),
        mirror("jwt", {"discovery_url": url}),
        mirror("strict", {"discovery_url": url, "audience": "api", "allowed_clients": ["console"]}),
        mirror("untouched", {"discovery_url": url}),
    ]
    with Emulator(runtimes=tables) as double:
        yield double
