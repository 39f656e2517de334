from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from agentdouble.mcp_hosting import McpEndpoint, endpoint
from tests.agentdouble import mcp_wire
from tests.agentdouble.calling import TIMEOUT_S, eventually, http
from tests.agentdouble.mcp_hosting.conftest import Gate, Hosting, make_server

KEY = "endpoint-key"


@pytest.fixture(scope="module")
def url(hosting: Hosting) -> str:
    """The address of an endpoint with the plain server."""
    return hosting.add("endpoint", McpEndpoint(make_server), KEY)


def test_server_is_called_in_a_session(url: str) -> None:
    """The version with sessions lists and calls tools."""
    session = mcp_wire.open_session(url, KEY)
    listed = mcp_wire.result(mcp_wire.post(url, mcp_wire.message("tools/list"), KEY, session))

    assert ["echo", "progress", "exit", "hang"] == [tool["name"] for tool in listed["tools"]]
    assert {"server": "plain", "value": [1]} == mcp_wire.call(url, KEY, session, "echo", value=[1])[
        "structuredContent"
    ]


def test_same_address_serves_the_version_without_sessions(url: str) -> None:
    """A request's header selects the version."""
    answer = mcp_wire.call_modern(url, KEY, "echo", value="now")

    assert {"server": "plain", "value": "now"} == answer["structuredContent"]


@pytest.mark.parametrize(
    ("body", "code"), [(b"{", -32700), (b'{"jsonrpc": "2.0", "id": 1}', -32602)]
)
def test_malformed_messages_are_refused(url: str, body: bytes, code: int) -> None:
    """With a JSON-RPC error, and the server survives."""
    session = mcp_wire.open_session(url, KEY)
    answer = mcp_wire.http.post(url, content=body, headers=mcp_wire.headers(KEY, session))

    assert (400, code) == (answer.status_code, answer.json()["error"]["code"])
    assert not mcp_wire.call(url, KEY, session, "echo").get("isError", False)


def test_body_over_the_limit_is_refused(hosting: Hosting) -> None:
    """413, even without a declared length."""
    url = hosting.add("small", McpEndpoint(make_server, body_limit=1000), KEY)
    body = json.dumps({**mcp_wire.INITIALIZE, "padding": "x" * 1000}).encode()
    content = (body[at : at + 100] for at in range(0, len(body), 100))

    answer = mcp_wire.http.post(url, content=content, headers=mcp_wire.headers(KEY))

    assert 413 == answer.status_code


def test_idle_session_ends(hosting: Hosting) -> None:
    """It is not found any more, and another can be opened."""
    url = hosting.add("idle", McpEndpoint(make_server, idle_timeout_s=0.5), KEY)
    with idle_sessions() as idle:
        session = mcp_wire.post(url, mcp_wire.INITIALIZE, KEY).headers["mcp-session-id"]
        assert idle.wait(TIMEOUT_S)

    assert (404, "Session not found") == mcp_wire.error(
        mcp_wire.post(url, mcp_wire.message("ping"), KEY, session)
    )
    assert session != mcp_wire.open_session(url, KEY)


def test_a_new_session_ends_the_one_that_was_idle_longest(hosting: Hosting) -> None:
    """What has no sessions, or is refused, ends none."""
    url = hosting.add("full", McpEndpoint(make_server, max_sessions=3), KEY)
    first, second, third = (mcp_wire.open_session(url, KEY) for _ in range(3))
    mcp_wire.call(url, KEY, first, "echo")
    mcp_wire.call_modern(url, KEY, "echo")
    assert 404 == mcp_wire.post(url, mcp_wire.message("ping"), KEY, "unknown").status_code
    assert all(alive(url, session) for session in (third, second, first))

    fourth = mcp_wire.open_session(url, KEY)

    assert [True, True, False, True] == [
        alive(url, session) for session in (first, second, third, fourth)
    ]


def test_sessions_that_clients_end_take_no_room(hosting: Hosting) -> None:
    url = hosting.add("ended", McpEndpoint(make_server, max_sessions=2), KEY)
    first = mcp_wire.open_session(url, KEY)
    for _ in range(3):
        headers = {
            "Authorization": f"Bearer {KEY}",
            "Mcp-Session-Id": mcp_wire.open_session(url, KEY),
        }
        assert 200 == http.delete(url, headers=headers).status_code

    assert alive(url, first)


def test_a_session_that_is_used_is_not_idle(hosting: Hosting) -> None:
    """If all are used, a further one is refused, until a client no longer listens."""
    url = hosting.add("used", McpEndpoint(make_server, max_sessions=1), KEY)
    used = mcp_wire.open_session(url, KEY)

    with mcp_wire.streamed(url, KEY, used):
        refused = mcp_wire.post(url, mcp_wire.INITIALIZE, KEY)
        assert (503, "Too many open sessions") == mcp_wire.error(refused)
        assert alive(url, used)

    eventually(lambda: mcp_wire.post(url, mcp_wire.INITIALIZE, KEY).status_code, {200}.__contains__)
    assert not alive(url, used)


def test_many_sessions_that_nobody_ends_leave_few(hosting: Hosting) -> None:
    """Also if they are opened at the same time."""
    url = hosting.add("left", McpEndpoint(make_server, max_sessions=4), KEY)

    def opened(_number: int) -> str | None:
        return mcp_wire.post(url, mcp_wire.INITIALIZE, KEY).headers.get("mcp-session-id")

    with ThreadPoolExecutor(4) as pool:
        sessions = [session for session in pool.map(opened, range(40)) if session]

    assert len(sessions) > 30
    assert 0 < sum(alive(url, session) for session in sessions) <= 4


def alive(url: str, session: str) -> bool:
    return mcp_wire.post(url, mcp_wire.message("ping"), KEY, session).status_code == 200


@contextmanager
def idle_sessions() -> Iterator[threading.Event]:
    """Yield an event that is set when the SDK logs the end of an idle session."""
    idle = threading.Event()
    logger = logging.getLogger("mcp.server.streamable_http_manager")

    def see(record: logging.LogRecord) -> bool:
        if "idle timeout" in record.getMessage():
            idle.set()
        return True

    level = logger.level
    logger.addFilter(see)
    logger.setLevel(logging.INFO)
    try:
        yield idle
    finally:
        logger.removeFilter(see)
        logger.setLevel(level)


def test_handler_that_exits_ends_only_its_request(url: str) -> None:
    """``sys.exit()`` in a tool is an error of that call, and nothing else stops."""
    session = mcp_wire.open_session(url, KEY)
    message = mcp_wire.message("tools/call", {"name": "exit", "arguments": {}})
    (answer,) = mcp_wire.replies(mcp_wire.post(url, message, KEY, session))

    assert "error" in answer
    assert mcp_wire.call(url, KEY, session, "echo")


def test_server_that_fails_to_start_is_a_clear_error(hosting: Hosting) -> None:
    """Requests get a 503 while its lifespan fails; once it works, the next one is answered."""
    works = False

    @asynccontextmanager
    async def lifespan(_server: Any) -> AsyncIterator[None]:
        if not works:
            raise OSError("no database")
        yield

    url = hosting.add("unstarted", McpEndpoint(lambda: make_server(lifespan=lifespan)), KEY)

    assert (503, "The server did not start; its log says why.") == mcp_wire.error(
        mcp_wire.post(url, mcp_wire.INITIALIZE, KEY)
    )
    works = True
    assert mcp_wire.open_session(url, KEY)


def test_hanging_server_does_not_delay_shutdown(
    hosting: Hosting, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is cancelled."""
    monkeypatch.setattr(endpoint, "STOP_WITHIN_S", 0.05)

    @asynccontextmanager
    async def lifespan(_server: Any) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await gate.wait()

    url = hosting.add("hanging", McpEndpoint(lambda: make_server(lifespan=lifespan)), KEY)
    assert mcp_wire.open_session(url, KEY)
    hosting.remove("hanging")

    gate.see(gate.exited)


def test_sdk_is_imported_only_when_used() -> None:
    """Hosting costs a double without MCP services nothing."""
    script = "import sys, agentdouble.mcp_hosting; print('mcp' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert "False\n" == done.stdout
