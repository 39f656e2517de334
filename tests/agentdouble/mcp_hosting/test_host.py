from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from agentdouble.mcp_hosting import McpEndpoint
from tests.agentdouble import mcp_wire
from tests.agentdouble.calling import TIMEOUT_S, background
from tests.agentdouble.mcp_hosting.conftest import Gate, Hosting, make_server

pytestmark = pytest.mark.smoke

ONE, OTHER = "key-one", "key-other"
SEND_ONE = "send 'Authorization: Bearer <a key of the service 'keyed'>'."


@pytest.fixture(scope="module")
def url(hosting: Hosting) -> str:
    """The address of a service with two keys."""
    return hosting.add("keyed", McpEndpoint(make_server), ONE, OTHER)


@pytest.mark.parametrize(
    ("sent", "difference", "challenge"),
    [
        ({}, "has no API key", "Bearer"),
        ({"Authorization": f"Basic {ONE}"}, "has no API key", "Bearer"),
        ({"Authorization": "Bearer wrong"}, "has a wrong API key", 'Bearer error="invalid_token"'),
        (
            {"Authorization": f"Bearer {ONE[:-1]}"},
            "has a wrong API key",
            'Bearer error="invalid_token"',
        ),
    ],
)
def test_request_without_a_valid_key_is_refused(
    url: str, sent: dict[str, Any], difference: str, challenge: str
) -> None:
    """Missing, wrong and misplaced keys open nothing (MCP-02)."""
    answer = mcp_wire.http.request(
        "POST", url, json=mcp_wire.INITIALIZE, headers={"Accept": mcp_wire.ACCEPT, **sent}
    )

    assert (401, f"The request {difference}: {SEND_ONE}") == mcp_wire.error(answer)
    assert challenge == answer.headers["www-authenticate"]


@pytest.mark.parametrize("path", ["nobody", "keyed/more"])
def test_unknown_service_is_a_clear_error(hosting: Hosting, url: str, path: str) -> None:
    """Only the exact name is answered, without a redirect."""
    answer = mcp_wire.post(hosting.at(path), mcp_wire.INITIALIZE, ONE)

    name = path.replace("%2F", "/")
    assert (404, f"There is no MCP service {name!r}.") == mcp_wire.error(answer)


def test_another_service_s_key_is_refused(hosting: Hosting, url: str) -> None:
    other = hosting.add("another", McpEndpoint(lambda: make_server("another")), "key-of-another")

    assert 401 == mcp_wire.post(other, mcp_wire.INITIALIZE, ONE).status_code
    assert 401 == mcp_wire.post(url, mcp_wire.INITIALIZE, "key-of-another").status_code


def test_services_are_isolated(hosting: Hosting, url: str) -> None:
    """Each name reaches its own server, which alone knows its sessions."""
    other = hosting.add("second", McpEndpoint(lambda: make_server("second")), ONE)
    session_here, session_there = mcp_wire.open_session(url, ONE), mcp_wire.open_session(other, ONE)

    assert ["plain", "second"] == [
        mcp_wire.call(at, ONE, session, "echo")["structuredContent"]["server"]
        for at, session in ((url, session_here), (other, session_there))
    ]
    assert 404 == mcp_wire.post(url, mcp_wire.message("ping"), ONE, session_there).status_code


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_session_belongs_to_the_key_that_opened_it(url: str, method: str) -> None:
    """The service's other keys do not find it, and it survives."""
    session = mcp_wire.open_session(url, ONE)
    sent = mcp_wire.headers(OTHER, session)

    answer = mcp_wire.http.request(method, url, json=mcp_wire.message("ping"), headers=sent)

    assert (404, "Session not found") == mcp_wire.error(answer)
    assert mcp_wire.call(url, ONE, session, "echo")


def test_session_header_is_dropped_for_the_version_without_sessions(hosting: Hosting) -> None:
    """It means nothing there, so the server behind does not see it."""
    url = hosting.add("seeing", Seeing(), ONE)
    more = {"mcp-session-id": "somebody's", "mcp-protocol-version": mcp_wire.MODERN}
    answer = mcp_wire.http.post(url, headers=mcp_wire.headers(ONE, **more))

    assert "mcp-session-id" not in answer.json()


def test_revoked_key_is_refused_at_once(hosting: Hosting) -> None:
    """Its sessions too; other keys keep working."""
    url = hosting.add("revoking", McpEndpoint(make_server), ONE, OTHER)
    session, remaining = mcp_wire.open_session(url, ONE), mcp_wire.open_session(url, OTHER)

    hosting.rekey("revoking", OTHER)

    assert 401 == mcp_wire.post(url, mcp_wire.message("ping"), ONE, session).status_code
    assert mcp_wire.call(url, OTHER, remaining, "echo")


def test_revoking_a_key_ends_its_pending_requests(hosting: Hosting, gate: Gate) -> None:
    """A call is cut off, a stream ends, and those of another key continue."""
    url = hosting.add("cutting", McpEndpoint(lambda: make_server(hang=gate.wait)), ONE, OTHER)
    session, remaining = mcp_wire.open_session(url, ONE), mcp_wire.open_session(url, OTHER)
    hang = mcp_wire.message("tools/call", {"name": "hang", "arguments": {}})
    with mcp_wire.streamed(url, OTHER, remaining) as (other, _):
        hanging = background(lambda: mcp_wire.post(url, hang, ONE, session))
        gate.see(gate.entered)
        with mcp_wire.streamed(url, ONE, session) as (_, events):
            hosting.rekey("cutting", OTHER)

            assert [] == list(events)
        assert [] == mcp_wire.replies(hanging.result(TIMEOUT_S))
        assert not other.is_closed
        assert mcp_wire.call(url, OTHER, remaining, "echo")


@pytest.mark.slow
def test_service_can_be_removed_and_replaced(hosting: Hosting, gate: Gate) -> None:
    """Its requests end with it; another can take the same name."""
    url = hosting.add("passing", McpEndpoint(lambda: make_server(hang=gate.wait)), ONE)
    session = mcp_wire.open_session(url, ONE)
    hang = mcp_wire.message("tools/call", {"name": "hang", "arguments": {}})
    hanging = background(lambda: mcp_wire.post(url, hang, ONE, session))
    gate.see(gate.entered)

    hosting.remove("passing")

    gate.see(gate.exited)
    assert [] == mcp_wire.replies(hanging.result(TIMEOUT_S))
    assert 404 == mcp_wire.post(url, mcp_wire.INITIALIZE, ONE).status_code
    hosting.add("passing", McpEndpoint(lambda: make_server("new")), OTHER)
    assert 404 == mcp_wire.post(url, mcp_wire.message("ping"), OTHER, session).status_code
    assert mcp_wire.open_session(url, OTHER)


class Seeing:
    """An application that answers with the received headers."""

    @asynccontextmanager
    async def running(self) -> Any:
        yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        await JSONResponse(headers)(scope, receive, send)


class Failing(Seeing):
    """An application that raises, before or amid its answer."""

    def __init__(self, started: bool) -> None:
        self._begun = started

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise OSError("the secret address")


def test_server_exception_fails_only_its_request(hosting: Hosting) -> None:
    """The 500 refers to the log and does not show the exception."""
    url = hosting.add("failing", Failing(False), ONE)

    status, message = mcp_wire.error(mcp_wire.post(url, {}, ONE))
    assert (500, "The double failed. Its log says more") == (status, message.partition(",")[0])


def test_exception_during_a_response_breaks_it_off(hosting: Hosting, url: str) -> None:
    """The caller sees that it is incomplete; other services continue."""
    broken = hosting.add("breaking", Failing(True), ONE)

    with pytest.raises(httpx.TransportError):
        mcp_wire.post(broken, {}, ONE)
    assert mcp_wire.open_session(url, ONE)
