"""Checks of MCP over streamable HTTP (MCP-01)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import strategies as st

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import mcp_servers
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.examples import Input, for_each
from doublecheck.contracts.mcp_servers import Service, ask, client
from doublecheck.contracts.verdicts import Verdict
from doublecheck.wire import mcp
from doublecheck.wire.mcp import McpServer, McpSession

FIRST_VERSION = "2024-11-05"
NO_VERSION = "9999-12-31"
IDS = Input(
    st.one_of(st.integers(0, 2**53 - 1), st.text("aZ09-_", min_size=1, max_size=40)),
    ("Id-0_a", 2**40, 0, "7", 7),
)


@clause("MCP-01", surface="services", writes=True)
def test_a_service_speaks_mcp_at_its_address(service: Service) -> None:
    """A session is opened, used several times and closed; then another one is."""
    for _ in range(2):
        with service.client() as mcp:
            assert {} == _without_metadata(mcp.ask("ping"))
            assert sorted(tool.name for tool in mcp.tools())
            assert mcp.tools()


@clause("MCP-01")
@pytest.mark.parametrize("asked", [mcp.VERSION, NO_VERSION], ids=["known", "unknown"])
def test_a_session_begins_with_an_agreement(
    platform: Platform, mcp_server: McpServer, asked: str
) -> None:
    """The server names a version of MCP, itself and its tools.

    A version that nobody knows is answered with one that the server knows.
    """
    params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": mcp.CLIENT}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    response = platform.send(mcp.request(mcp_server, None, message))
    agreed = mcp.read_result(response)
    version, told = agreed.get("protocolVersion"), agreed.get("serverInfo")
    capabilities = agreed.get("capabilities")
    _end(platform, mcp_server, str(version), response.headers.get("mcp-session-id"))

    assert isinstance(version, str), agreed
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", version), agreed
    assert FIRST_VERSION <= version < NO_VERSION, agreed
    assert isinstance(told, dict), agreed
    assert told.get("name"), agreed
    assert isinstance(capabilities, dict), agreed
    assert isinstance(capabilities.get("tools"), dict), agreed


@clause("MCP-01")
@for_each(id_=IDS)
def test_an_answer_has_the_id_of_its_request(
    platform: Platform, mcp_server: McpServer, mcp_session: McpSession, id_: str | int
) -> None:
    """One answer of JSON-RPC 2.0 for each request, with its id, of the same type."""
    for method in ("ping", "tools/list"):
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": id_, "method": method, "params": {}}
        found = ask(platform, mcp_server, mcp_session, message)

        assert [("2.0", id_, type(id_).__name__, True)] == [
            (one.get("jsonrpc"), one.get("id"), type(one.get("id")).__name__, "result" in one)
            for one in found
        ]


@clause("MCP-01")
def test_a_notification_has_no_answer(
    platform: Platform, mcp_server: McpServer, mcp_session: McpSession
) -> None:
    """It is accepted, and the answer is empty."""
    params: dict[str, dict[str, Any]] = {"initialized": {}, "cancelled": {"requestId": 4711}}
    for name, given in params.items():
        message = {"jsonrpc": "2.0", "method": f"notifications/{name}", "params": given}

        response = platform.send(mcp.request(mcp_server, mcp_session, message))

        assert response.is_success, response.text
        assert [] == mcp_servers.answers(response)


@clause("MCP-01")
def test_a_method_that_is_not_there_is_refused(
    platform: Platform, mcp_server: McpServer, mcp_session: McpSession
) -> None:
    """So is a body that is no JSON; the next request is answered."""
    unknown = {"jsonrpc": "2.0", "id": 1, "method": "doublecheck/nothing", "params": {}}
    broken = mcp.request(mcp_server, mcp_session, unknown)

    answered = platform.send(broken)
    assert _is_refused(answered), answered.text
    answered = platform.send(type(broken)("POST", broken.url, broken.headers, b'{"jsonrpc'))
    assert _is_refused(answered), answered.text
    [after] = ask(platform, mcp_server, mcp_session, {**unknown, "method": "ping"})
    assert {} == _without_metadata(after["result"])


@clause("MCP-01")
def test_a_get_opens_a_stream_or_is_refused(
    platform: Platform, mcp_server: McpServer, mcp_session: McpSession
) -> None:
    """A server answers it with events, or with an error if it has none to send."""
    with platform.streaming(mcp.listen(mcp_server, mcp_session)) as response:
        kind = response.headers.get("content-type", "").lower()

        streams = response.is_success and kind.startswith("text/event-stream")
        assert streams or 400 <= response.status_code < 500, f"{response.status_code} {kind}"


@clause("MCP-01")
def test_sessions_do_not_disturb_each_other(platform: Platform, mcp_server: McpServer) -> None:
    """Two are used in turns, and one of them is still used after the other was ended."""
    with client(platform, mcp_server) as one, client(platform, mcp_server) as other:
        names = [sorted(tool.name for tool in each.tools()) for each in (one, other, one, other)]
        other.close()
        names += [sorted(tool.name for tool in each.tools()) for each in (one, other, one)]

    assert names[0]
    assert [names[0]] * 7 == names


@clause("MCP-01")
def test_a_session_that_was_ended_is_refused(platform: Platform, mcp_server: McpServer) -> None:
    """It is not observable where sessions have no ids, or cannot be ended."""
    session = mcp_servers.open_session(platform, mcp_server)
    ended = platform.send(mcp.end(mcp_server, session).request)
    if session.id is None or not ended.is_success:
        pytest.skip(f"{Verdict.NOT_OBSERVABLE.value}: this server's sessions cannot be ended")
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}

    response = platform.send(mcp.request(mcp_server, session, ping))

    assert 400 <= response.status_code < 500, f"{response.status_code}: {response.text}"


def _is_refused(response: Any) -> bool:
    """Whether an answer is an error, of HTTP or of JSON-RPC."""
    if 400 <= response.status_code < 500:
        return True
    found = mcp_servers.answers(response)
    return response.is_success and bool(found) and all("error" in one for one in found)


def _without_metadata(result: Any) -> Any:
    return {name: value for name, value in result.items() if name != "_meta"}


def _end(platform: Platform, server: McpServer, version: str, id_: str | None) -> None:
    if id_ is not None:
        platform.send(mcp.end(server, McpSession(version, id_, {})).request)
