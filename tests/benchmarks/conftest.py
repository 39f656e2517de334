"""Shared fixtures of the benchmarks: several kinds of doubles, and a cheap client.

httpx costs half a millisecond a request, more than some of what is measured here, so the
calls go over ``http.client``.
"""

from __future__ import annotations

import datetime as dt
import http.client
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import pytest

from agentdouble import Emulator
from agentdouble.core import invoke_tool
from agentdouble.core.signing import Credentials

_sessions = itertools.count()


class Double(Protocol):
    """A double of this process or of another one."""

    @property
    def url(self) -> str: ...
    @property
    def credentials(self) -> Credentials: ...
    @property
    def tool_id(self) -> str: ...
    @property
    def token(self) -> str: ...


class Caller:
    """Runs code in sessions of a double over one connection, with signatures."""

    def __init__(self, double: Double) -> None:
        self.double = double
        self._address = invoke_tool.ToolAddress(double.url, double.credentials)
        self._own = {"X-API-Key": double.token}
        self._connection = http.client.HTTPConnection(urlsplit(double.url).netloc)

    def run(self, code: str, session: str, language: str = "python3") -> dict[str, Any]:
        """Run code that succeeds and return the JSON of section 2.7."""
        call = invoke_tool.RunCode(self.double.tool_id, session, code, language, timeout_s=60)
        answer = self._ask("InvokeTool", call.body())
        inner = invoke_tool.read(answer.status, answer.read()).inner()
        assert inner["success"], inner
        return inner

    def reconnect(self) -> None:
        """Reconnect, because the server closes a connection that is idle for five seconds."""
        self._connection.close()

    def sessions(self) -> list[dict[str, Any]]:
        """Return the live sessions."""
        self._connection.request("GET", "/_emulator/sessions", headers=self._own)
        sessions: list[dict[str, Any]] = json.load(self._connection.getresponse())["sessions"]
        return sessions

    def destroy(self, session_id: str) -> None:
        """Destroy a session."""
        self._ask("DeleteSession", {"SessionId": session_id}).read()

    def _ask(self, action: str, body: Mapping[str, Any]) -> http.client.HTTPResponse:
        now = dt.datetime.now(dt.timezone.utc)
        request = invoke_tool.build(body, self._address, now, action=action)
        target = request.url.removeprefix(self.double.url)
        self._connection.request("POST", target, request.body, dict(request.headers))
        return self._connection.getresponse()

    def close(self) -> None:
        self._connection.close()


def fresh() -> str:
    """Return an unused session id."""
    return f"s{next(_sessions)}"


def pss_mib(pid: int) -> float:
    """Return a process's proportional share of memory, in MiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _caller(**settings: Any) -> Iterator[Caller]:
    with Emulator(max_instances=400, **settings) as double:
        caller = Caller(double)
        caller.run("1", "warm-up")
        yield caller
        caller.close()


@pytest.fixture(scope="module")
def forking() -> Iterator[Caller]:
    """Start a double that forks each kernel on request."""
    yield from _caller(pool_size=0)


@pytest.fixture(scope="module")
def forking_openly() -> Iterator[Caller]:
    """Start a double that forks each kernel on request, and isolates none."""
    yield from _caller(pool_size=0, isolation="none")


@pytest.fixture(scope="module")
def local() -> Iterator[Caller]:
    """Start a double whose kernels use the stock provisioner."""
    yield from _caller(provisioner="local-provisioner", pool_size=0)
