"""Checks of the keys of MCP services (MCP-02)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import wrong_keys
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.mcp_servers import Make, Service, client, open_session
from doublecheck.contracts.verdicts import Verdict
from doublecheck.target.facts import variable
from doublecheck.wire import mcp
from doublecheck.wire.calls import Request
from doublecheck.wire.mcp import McpServer, McpSession

AUTHORIZATION = "Authorization"
NO_SCHEME = "the key without a scheme"
NOBODYS_TOOL = "doublecheck-nobody-has-this"  # whoever may call it is told that it is not there

Headers = Mapping[str, str]


@pytest.fixture
def keyed(mcp_server: McpServer) -> McpServer:
    """The server, with its key; skip the check if it has none."""
    if not mcp_server.headers.get(AUTHORIZATION):
        held_in = f"{variable('api_key')} or DOUBLECHECK_MCP_API_KEY"
        pytest.skip(f"{Verdict.NOT_OBSERVABLE.value}: needs a server with a key, set in {held_in}")
    return mcp_server


@clause("MCP-02")
def test_the_key_is_accepted_each_time(platform: Platform, keyed: McpServer) -> None:
    """Three sessions are opened and used with it."""
    for _ in range(3):
        with client(platform, keyed) as mcp:
            assert mcp.tools()


@clause("MCP-02")
def test_no_session_begins_without_the_key(platform: Platform, keyed: McpServer) -> None:
    """Not without any key, with a part or another form of it, nor with the key elsewhere."""
    _require_accepted(platform, keyed)

    statuses = {
        name: platform.send(mcp.initialize(server).request).status_code
        for name, server in _wrong(keyed).items()
    }

    assert {} == _accepted(statuses)


@clause("MCP-02")
@pytest.mark.parametrize("sent", [wrong_keys.NO_KEY, "another key", "half of the key", NO_SCHEME])
def test_nothing_is_done_in_a_session_without_the_key(
    platform: Platform, keyed: McpServer, sent: str
) -> None:
    """Every request of a session needs it; one without it does not end the session either."""
    session = open_session(platform, keyed)
    accepted = {
        name: _status(platform, request)
        for name, request in _requests(keyed, session).items()
        if name not in ("initialize", "DELETE")
    }
    assert accepted["tools/list"] == 200, accepted

    wrong = replace(keyed, headers=_wrong(keyed)[sent].headers)
    statuses = {
        name: _status(platform, request) for name, request in _requests(wrong, session).items()
    }
    offered = {name: one for name, one in statuses.items() if accepted.get(name, 200) < 400}
    assert {} == _accepted(offered)

    ping = mcp.ask(keyed, session, "ping", {}).request
    assert 200 == _status(platform, ping), "a request without the key has ended the session"
    platform.send(mcp.end(keyed, session).request)


@clause("MCP-02", surface="services", writes=True)
def test_the_key_of_another_service_is_refused(
    platform: Platform, service: Service, make_service: Make
) -> None:
    """Each service takes its own key alone, in and out of a session."""
    other = make_service(f"{platform.target.mcp}{mcp.PATH}")
    for one, key in ((service, other), (other, service)):
        session = open_session(platform, one.server)
        wrong = replace(one.server, headers=key.server.headers)

        statuses = {
            name: _status(platform, request) for name, request in _requests(wrong, session).items()
        }

        assert {} == _accepted(statuses)
        platform.send(mcp.end(one.server, session).request)


@clause("MCP-02", surface="services", writes=True)
def test_the_key_of_a_deleted_service_is_refused(
    platform: Platform, service: Service, make_service: Make
) -> None:
    """At its own address, and at that of another service, which takes its own key still."""
    deleted = make_service(f"{platform.target.mcp}{mcp.PATH}")
    _require_accepted(platform, deleted.server)
    deleted.delete()
    elsewhere = replace(service.server, headers=deleted.server.headers)

    statuses = {
        name: platform.send(mcp.initialize(server).request).status_code
        for name, server in {"its own": deleted.server, "another's": elsewhere}.items()
    }

    assert {} == _accepted(statuses)
    _require_accepted(platform, service.server)


def _wrong(server: McpServer) -> Mapping[str, McpServer]:
    """Return the server with what is not its key, by what is wrong; a Bearer token alone is it."""
    key = server.headers[AUTHORIZATION].partition(" ")[2]
    other_schemes = {"as Basic": f"Basic {key}", "as Token": f"Token {key}", NO_SCHEME: key}
    headers: dict[str, Headers] = {
        **wrong_keys.headers(key),
        **{name: {AUTHORIZATION: value} for name, value in other_schemes.items()},
        **{name: {name: key} for name in ("X-API-Key", "Api-Key", "X-Authorization")},
    }
    found = {name: replace(server, headers=one) for name, one in headers.items()}
    for name in ("api_key", "key", "access_token", "Authorization"):
        found[f"?{name}="] = McpServer(f"{server.url}?{name}={key}")
    return found


def _requests(server: McpServer, session: McpSession) -> Mapping[str, Request]:
    """Return a request of each kind, the one that ends the session last."""
    return {
        "initialize": mcp.initialize(server).request,
        "a notification": mcp.initialized(server, session).request,
        "ping": mcp.ask(server, session, "ping", {}).request,
        "tools/list": mcp.ask(server, session, "tools/list", {}).request,
        "tools/call": mcp.call_tool(server, session, NOBODYS_TOOL, {}).request,
        "GET": mcp.listen(server, session),
        "DELETE": mcp.end(server, session).request,
    }


def _status(platform: Platform, request: Request) -> int:
    """Return the status of an answer, which may be a stream without an end."""
    with platform.streaming(request) as response:
        return response.status_code


def _require_accepted(platform: Platform, server: McpServer) -> None:
    with client(platform, server) as mcp:
        mcp.ask("ping")


def _accepted(statuses: Mapping[str, int]) -> dict[str, int]:
    """Return the statuses that are no refusal (U-MCP-UNAUTHORIZED)."""
    return {name: one for name, one in statuses.items() if not 400 <= one < 500}
