"""Checks of the protocol and of the keys of MCP services."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import forgeries, mcp_servers, wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.engine import for_each
from doublecheck.contracts.inputs import Input
from doublecheck.contracts.mcp_servers import CheckedService, Make, ask, client, open_session
from doublecheck.contracts.sentences import instead, listed, short
from doublecheck.contracts.verdicts import not_observable
from doublecheck.target.facts import variable
from doublecheck.wire import mcp
from doublecheck.wire.calls import Request
from doublecheck.wire.mcp import McpServer, McpSession

FIRST_VERSION = "2024-11-05"
NO_VERSION = "9999-12-31"
# of requests that the server does not know, or has answered
NOTIFICATIONS: dict[str, dict[str, Any]] = {
    "notifications/cancelled": {"requestId": 1, "reason": "on purpose"},
    "notifications/progress": {"progressToken": "nobodys", "progress": 1},
    "notifications/roots/list_changed": {},
}
IDS = Input(
    st.one_of(st.integers(0, 2**53 - 1), st.text("aZ09-_", min_size=1, max_size=40)),
    ("Id-0_a" * 30, 2**40, -7, 0, "7", 7),
)


@clause("MCP-01")
@pytest.mark.parametrize("requested", [mcp.VERSION, NO_VERSION], ids=["known", "unknown"])
def test_a_session_begins_with_an_agreement(
    platform: Platform, mcp_server: McpServer, requested: str
) -> None:
    """The server names a version of MCP, itself and its tools.

    If the client requests an unknown version, the server replies with one that it supports.
    """
    params = {"protocolVersion": requested, "capabilities": {}, "clientInfo": mcp.CLIENT}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    response = platform.send(mcp.request(mcp_server, None, message))
    agreed = mcp.read_result(response)
    version = str(agreed.get("protocolVersion"))
    if (session_id := response.headers.get("mcp-session-id")) is not None:
        platform.send(mcp.end(mcp_server, McpSession(version, session_id, {})).request)

    is_version = re.fullmatch(r"\d{4}-\d\d-\d\d", version)
    assert is_version, f"initialize agrees on {version!r}, which is no version"
    assert FIRST_VERSION <= version < NO_VERSION, f"initialize agrees on {version!r}"
    server_info, capabilities = agreed.get("serverInfo"), agreed.get("capabilities")
    is_named = isinstance(server_info, dict) and server_info.get("name")
    assert is_named, f"initialize names no server: {short(server_info)}"
    has_tools = isinstance(capabilities, dict) and isinstance(capabilities.get("tools"), dict)
    assert has_tools, f"initialize offers no tools: {short(capabilities)}"


@clause("MCP-01")
@for_each(id_=IDS)
def test_an_answer_has_the_id_of_its_request(
    platform: Platform, mcp_server: McpServer, id_: str | int
) -> None:
    """Each request gets one JSON-RPC 2.0 answer, with its id, of the same type.

    Sessions whose requests have the same id get their own answers.
    """
    session = open_session(platform, mcp_server)

    def result_of(method: str, params: Any, id_: str | int) -> Any:
        message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}
        [answer] = ask(platform, mcp_server, session, message)
        expected = ("2.0", id_, type(id_))
        assert expected == (answer["jsonrpc"], answer["id"], type(answer["id"])), (
            f"the answer to {method} has the id {answer['id']!r} instead of {id_!r}"
        )
        assert "result" in answer, f"{method} is answered with an error: {short(answer)}"
        return answer["result"]

    for method in ("ping", "tools/list"):
        result_of(method, {}, id_)
    if platform.target.reference_app:
        call = {"name": "join", "arguments": {"first": f"{id_}"}}
        content = result_of("tools/call", call, 1)["content"]
        texts = [block.get("text") for block in content]
        assert f"{id_}!" in texts, f"tools/call has the result of another session: {short(texts)}"
    platform.send(mcp.end(mcp_server, session).request)


@clause("MCP-01")
def test_a_method_that_is_not_there_is_refused(platform: Platform, mcp_server: McpServer) -> None:
    """Unknown methods and bodies that are not JSON are refused; the next request is answered.

    Notifications have no answer, even the cancellation of a request that was answered.
    """
    session = open_session(platform, mcp_server)
    unknown = {"jsonrpc": "2.0", "id": 1, "method": "doublecheck/nothing", "params": {}}
    request = mcp.request(mcp_server, session, unknown)

    for wrong in (request, replace(request, content=b'{"jsonrpc')):
        response = platform.send(wrong)
        assert _is_refused(response), (
            f"{short(wrong.content)} is not refused: {short(response.text)}"
        )
    for method, params in NOTIFICATIONS.items():
        notification = {"jsonrpc": "2.0", "method": method, "params": params}
        answer = platform.send(mcp.request(mcp_server, session, notification))
        assert [] == mcp_servers.answers(answer), f"the notification {method} is answered"
    wrong_calls = ({"name": NOBODYS_TOOL, "arguments": {}}, {"name": "join", "arguments": {}})
    for before in ({}, *({"method": "tools/call", "params": params} for params in wrong_calls)):
        if before:
            ask(platform, mcp_server, session, {**unknown, **before})
        [after] = ask(platform, mcp_server, session, {**unknown, "method": "ping"})
        result = after.get("result", {"no": "result"})
        told = {name: value for name, value in result.items() if name != "_meta"}
        assert {} == told, f"ping returns a result that is not empty: {short(told)}"
        [after] = ask(platform, mcp_server, session, {**unknown, "method": "tools/list"})
        assert after.get("result", {}).get("tools"), "no tools are listed after a refusal"
    if platform.target.reference_app:
        ask(platform, mcp_server, session, unknown)
        call = {"name": "join", "arguments": {"first": "a"}}
        request = mcp.request(
            mcp_server, session, {**unknown, "method": "tools/call", "params": call}
        )
        for answer in (platform.send(request), wire.send_in_parts(platform, request)):
            [after] = mcp_servers.answers(answer)
            texts = [block.get("text") for block in after.get("result", {}).get("content", ())]
            assert "a!" in texts, f"no text after a refusal: {after}"
    platform.send(mcp.end(mcp_server, session).request)


@clause("MCP-01")
def test_a_session_that_has_ended_is_refused(platform: Platform, mcp_server: McpServer) -> None:
    """If a server ends a session when it is told to, the session no longer exists."""
    session = open_session(platform, mcp_server)

    ended = platform.send(mcp.end(mcp_server, session).request)

    if not ended.is_success or session.id is None:
        not_observable("the server does not end sessions, which MCP allows")
    after = platform.send(mcp.ask(mcp_server, session, "ping", {}).request)
    assert _is_refused(after), f"a session that has ended answers a ping: {short(after.text)}"


@clause("MCP-01")
def test_sessions_do_not_disturb_each_other(platform: Platform, mcp_server: McpServer) -> None:
    """Two sessions work in turns, and one still works after the other has ended."""
    with client(platform, mcp_server) as first, client(platform, mcp_server) as second:
        names = [sorted(tool.name for tool in mcp.tools()) for mcp in (first, second) * 8]
        second.close()
        names += [sorted(tool.name for tool in mcp.tools()) for mcp in (first, second, first)]

    assert names[0], "no tools are listed"
    expected = [names[0]] * 19
    assert expected == names, f"two sessions have other tools: {instead(names, expected)}"


def _is_refused(response: Any) -> bool:
    """Whether an answer is an error, of HTTP or of JSON-RPC."""
    if 400 <= response.status_code < 500:
        return True
    answers = mcp_servers.answers(response)
    return response.is_success and bool(answers) and all("error" in answer for answer in answers)


AUTHORIZATION = "Authorization"
KINDS = ("initialize", "a notification", "ping", "tools/list", "tools/call", "GET", "DELETE")
NOBODYS_TOOL = "doublecheck-nobody-has-this"  # callers with access are told that it is unknown

Headers = Mapping[str, str]


@pytest.fixture
def keyed(mcp_server: McpServer) -> McpServer:
    """The server, with its key. Skip the check if it has none."""
    if not mcp_server.headers.get(AUTHORIZATION):
        held_in = f"{variable('api_key')} or DOUBLECHECK_MCP_API_KEY"
        not_observable(f"needs a server with a key, set in {held_in}")
    return mcp_server


@clause("MCP-02")
def test_nothing_is_done_without_the_key(platform: Platform, keyed: McpServer) -> None:
    """Every request needs the exact key: none, a part, a variant, or another header is refused.

    A refused request does not end the session.
    """
    session = open_session(platform, keyed)
    offered = {"initialize", "DELETE", *_accepted(platform, {"": keyed}, session, KINDS[1:-1])}
    assert "tools/list" in offered, "tools/list is refused with the key"

    accepted = _accepted(platform, _wrong(keyed), session, offered)
    assert {} == accepted, f"accepted without the exact Bearer key: {listed(accepted)}"
    still = _accepted(platform, {"": keyed}, session, ("ping",))
    assert {"ping": 200} == still, "a request without the key ended the session"
    platform.send(mcp.end(keyed, session).request)


@clause("MCP-02", surface="services", writes=True)
def test_the_key_of_another_service_is_refused(
    platform: Platform, service: CheckedService, make_service: Make
) -> None:
    """Each service accepts only its own key, inside and outside a session."""
    other_service = make_service(f"{platform.target.mcp}{mcp.PATH}")
    for target, key in ((service, other_service), (other_service, service)):
        session = open_session(platform, target.server)
        wrong = replace(target.server, headers=key.server.headers)
        accepted = _accepted(platform, {"": wrong}, session)
        assert {} == accepted, f"accepted with the key of another service: {listed(accepted)}"
        platform.send(mcp.end(target.server, session).request)


def _wrong(server: McpServer) -> Mapping[str, McpServer]:
    """Return the server with wrong keys, by what is wrong. Only a Bearer token is correct."""
    key = server.headers[AUTHORIZATION].partition(" ")[2]
    other_schemes = {"as Basic": f"Basic {key}", "as Token": f"Token {key}", "alone": key}
    headers: dict[str, Headers] = {
        **forgeries.wrong_key_headers(key),
        **{name: {AUTHORIZATION: value} for name, value in other_schemes.items()},
        **{name: {name: key} for name in ("X-API-Key", "Api-Key", "X-Authorization")},
    }
    servers = {name: replace(server, headers=fields) for name, fields in headers.items()}
    for name in ("api_key", "key", "access_token", "Authorization"):
        servers[f"?{name}="] = McpServer(f"{server.url}?{name}={key}")
    return servers


def _requests(server: McpServer, session: McpSession) -> Mapping[str, Request]:
    """Return a request of each kind. The last one ends the session."""
    return {
        "initialize": mcp.initialize(server).request,
        "a notification": mcp.initialized(server, session).request,
        "ping": mcp.ask(server, session, "ping", {}).request,
        "tools/list": mcp.ask(server, session, "tools/list", {}).request,
        "tools/call": mcp.call_tool(server, session, NOBODYS_TOOL, {}).request,
        "GET": mcp.listen(server, session),
        "DELETE": mcp.end(server, session).request,
    }


def _accepted(
    platform: Platform,
    servers: Mapping[str, McpServer],
    session: McpSession,
    kinds: Collection[str] = KINDS,
) -> dict[str, int]:
    """Return the statuses of answers that are not refusals (U-MCP-UNAUTHORIZED)."""
    accepted = {}
    for name, server in servers.items():
        requests = _requests(server, session)
        for kind in filter(kinds.__contains__, requests):
            with platform.streaming(requests[kind]) as response:  # the answer may be endless
                if not 400 <= response.status_code < 500:
                    accepted[f"{kind} ({name})" if name else kind] = response.status_code
    return accepted
