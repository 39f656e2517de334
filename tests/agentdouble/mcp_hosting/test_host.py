from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from agentdouble.mcp_hosting import Endpoint
from tests.agentdouble import mcp_wire
from tests.agentdouble.calling import TIMEOUT_S, background
from tests.agentdouble.mcp_hosting.conftest import Gate, Hosting, make_server

pytestmark = pytest.mark.smoke

ONE, OTHER = "key-one", "key-other"
SEND_ONE = "send 'Authorization: Bearer <a key of the service 'keyed'>'."


@pytest.fixture(scope="module")
def url(hosting: Hosting) -> str:
    """The address of a service with two keys."""
    return hosting.add("keyed", Endpoint(make_server), ONE, OTHER)


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
def test_a_request_without_a_key_of_the_service_is_refused(
    url: str, sent: dict[str, Any], difference: str, challenge: str
) -> None:
    """A key that is missing, wrong or elsewhere opens nothing (MCP-02)."""
    answer = mcp_wire.http.request(
        "POST", url, json=mcp_wire.INITIALIZE, headers={"Accept": mcp_wire.ACCEPT, **sent}
    )

    assert (401, f"The request {difference}: {SEND_ONE}") == mcp_wire.error(answer)
    assert challenge == answer.headers["www-authenticate"]


@pytest.mark.parametrize("path", ["nobody", "keyed/more"])
def test_an_unknown_service_is_a_clear_error(hosting: Hosting, url: str, path: str) -> None:
    """Only the exact name is answered, without a redirect."""
    answer = mcp_wire.post(hosting.at(path), mcp_wire.INITIALIZE, ONE)

    name = path.replace("%2F", "/")
    assert (404, f"There is no MCP service {name!r}.") == mcp_wire.error(answer)


def test_another_service_s_key_is_refused(hosting: Hosting, url: str) -> None:
    """Each service has keys of its own."""
    other = hosting.add("another", Endpoint(lambda: make_server("another")), "key-of-another")

    assert 401 == mcp_wire.post(other, mcp_wire.INITIALIZE, ONE).status_code
    assert 401 == mcp_wire.post(url, mcp_wire.INITIALIZE, "key-of-another").status_code


def test_two_services_are_held_apart(hosting: Hosting, url: str) -> None:
    """Each name reaches its own server, and a session is known to one alone."""
    other = hosting.add("second", Endpoint(lambda: make_server("second")), ONE)
    session_here, session_there = mcp_wire.open_session(url, ONE), mcp_wire.open_session(other, ONE)

    assert ["plain", "second"] == [
        mcp_wire.call(at, ONE, session, "echo")["structuredContent"]["server"]
        for at, session in ((url, session_here), (other, session_there))
    ]
    assert 404 == mcp_wire.post(url, mcp_wire.message("ping"), ONE, session_there).status_code


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_session_belongs_to_the_key_that_opened_it(url: str, method: str) -> None:
    """For another key of the service it is not there, and it lives on."""
    session = mcp_wire.open_session(url, ONE)
    sent = mcp_wire.headers(OTHER, session)

    answer = mcp_wire.http.request(method, url, json=mcp_wire.message("ping"), headers=sent)

    assert (404, "Session not found") == mcp_wire.error(answer)
    assert mcp_wire.call(url, ONE, session, "echo")


def test_another_key_s_session_does_not_come_along_to_the_version_without(hosting: Hosting) -> None:
    """There the header means nothing, so a server behind does not see it."""
    url = hosting.add("seeing", Seeing(), ONE)
    more = {"mcp-session-id": "somebody's", "mcp-protocol-version": mcp_wire.MODERN}
    answer = mcp_wire.http.post(url, headers=mcp_wire.headers(ONE, **more))

    assert "mcp-session-id" not in answer.json()


def test_a_revoked_key_is_refused_at_once(hosting: Hosting) -> None:
    """Its sessions too; a key that stays goes on."""
    url = hosting.add("revoking", Endpoint(make_server), ONE, OTHER)
    session, remaining = mcp_wire.open_session(url, ONE), mcp_wire.open_session(url, OTHER)

    hosting.rekey("revoking", OTHER)

    assert 401 == mcp_wire.post(url, mcp_wire.message("ping"), ONE, session).status_code
    assert mcp_wire.call(url, OTHER, remaining, "echo")


def test_what_a_revoked_key_waits_for_ends(hosting: Hosting, gate: Gate) -> None:
    """A call is cut off, a stream ends, and the ones of another key go on."""
    url = hosting.add("cutting", Endpoint(lambda: make_server(hang=gate.wait)), ONE, OTHER)
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
def test_a_service_can_be_removed_and_come_back(hosting: Hosting, gate: Gate) -> None:
    """What it was doing ends with it; under the same name there can be another one."""
    url = hosting.add("passing", Endpoint(lambda: make_server(hang=gate.wait)), ONE)
    session = mcp_wire.open_session(url, ONE)
    hang = mcp_wire.message("tools/call", {"name": "hang", "arguments": {}})
    hanging = background(lambda: mcp_wire.post(url, hang, ONE, session))
    gate.see(gate.entered)

    hosting.remove("passing")

    gate.see(gate.exited)
    assert [] == mcp_wire.replies(hanging.result(TIMEOUT_S))
    assert 404 == mcp_wire.post(url, mcp_wire.INITIALIZE, ONE).status_code
    hosting.add("passing", Endpoint(lambda: make_server("new")), OTHER)
    assert 404 == mcp_wire.post(url, mcp_wire.message("ping"), OTHER, session).status_code
    assert mcp_wire.open_session(url, OTHER)


class Seeing:
    """An application that answers with the headers it has seen."""

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


def test_an_exception_of_a_server_is_that_request_s(hosting: Hosting) -> None:
    """A 500 that says where the log tells of it, and itself tells nothing of the exception."""
    url = hosting.add("failing", Failing(False), ONE)

    status, message = mcp_wire.error(mcp_wire.post(url, {}, ONE))
    assert (500, "The double failed. Its log says more") == (status, message.partition(",")[0])


def test_an_exception_amid_an_answer_breaks_it_off(hosting: Hosting, url: str) -> None:
    """The caller sees that it is not whole; other services go on."""
    broken = hosting.add("breaking", Failing(True), ONE)

    with pytest.raises(httpx.TransportError):
        mcp_wire.post(broken, {}, ONE)
    assert mcp_wire.open_session(url, ONE)
