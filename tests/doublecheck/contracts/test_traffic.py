"""What the checks asked is counted: requests, what they made, and who answered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from doublecheck import Platform, Target
from doublecheck.contracts.traffic import Asked, Traffic
from doublecheck.wire import request_log
from doublecheck.wire.calls import Request
from doublecheck.wire.exchanges import Exchange

pytestmark = pytest.mark.smoke

URL = "https://a.example"
INVOKE = f"{URL}/?Action=InvokeTool&Version=2025-10-30"
RUN = {"ResponseMetadata": {}, "Result": {"UserSessionId": "u", "SessionId": "s-1"}}


def exchange(
    method: str, url: str, sent: Any = None, got: Any = None, **of_answer: Any
) -> Exchange:
    request = Request(method, url, {}, json.dumps(sent).encode())
    body = got if isinstance(got, bytes) else json.dumps(got).encode()
    return Exchange(request, **{"status": 200, "body": body, **of_answer})


def test_what_is_made_is_counted_once() -> None:
    """By the ids in the answers: an instance that is used again is the same."""
    sessions = f"{URL}/apps/a/users/u/sessions"
    send, stream = ({"method": f"message/{one}"} for one in ("send", "stream"))
    task = {"result": {"id": "t-1", "status": {"state": "completed"}}}
    event = b'data: {"result": {"taskId": "t-2", "kind": "status-update"}}\r\n\r\n'
    traffic = Traffic(checking=True)

    for one in (
        exchange("POST", INVOKE, got=RUN),
        exchange("POST", INVOKE, got=RUN),
        exchange("POST", sessions, got={"id": "1"}),
        exchange("POST", f"{sessions}/2", got={"id": "2"}),
        exchange("GET", f"{sessions}/2", got={"id": "2"}),
        exchange("POST", sessions, got={"detail": "no"}, status=409),
        exchange("POST", URL, send, task),
        exchange("POST", URL, stream, event + event),
        exchange("POST", f"{URL}/mcp", {"method": "initialize"}, headers={"Mcp-Session-Id": "m"}),
        exchange("POST", f"{URL}/invoke", {"prompt": "x"}, "text"),
    ):
        traffic.note("application", one)

    made = {"API session": 2, "MCP session": 1, "sandbox instance": 1, "task": 2}
    expected = Asked(10, made, {"application": (URL,)})
    assert expected == traffic.summed()
    assert (
        "10 requests (2 API sessions, 1 MCP session, 1 sandbox instance, 2 tasks)"
        == expected.in_words
    )


def test_an_address_that_did_not_answer_is_not_named() -> None:
    """The request counts; the double's own routes are about no platform."""
    traffic = Traffic(checking=True)
    traffic.note("mcp", exchange("POST", URL, status=None))
    traffic.note("mcp", exchange("GET", f"{URL}/_emulator/health"))

    assert Asked(1) == traffic.summed()


def test_an_address_that_was_only_asked_for_evidence_is_not_named() -> None:
    """It may have answered that it knows no such path."""
    traffic = Traffic()
    traffic.note("mcp", exchange("POST", URL, status=404))

    assert Asked(1) == traffic.summed()


def test_the_traffic_of_checks_is_added() -> None:
    """pytest-xdist's workers send it as JSON has it."""
    one, other = Traffic(checking=True), Traffic(checking=True)
    one.note("sandbox", exchange("POST", INVOKE, got=RUN))
    other.note("control_plane", exchange("POST", INVOKE, got=RUN))

    one.add(Traffic.from_dict(json.loads(json.dumps(other.to_dict()))))

    summed = one.summed()
    assert (2, {"sandbox instance": 1}) == (summed.requests, summed.made)
    assert {URL: ["control plane", "sandbox"]} == summed.surfaces_by_address


def test_every_client_is_counted(platform_server: Target) -> None:
    """Those of MCP and of streams as well; afterwards nobody listens."""
    traffic = Traffic(checking=True)
    with Platform(platform_server) as platform:
        with request_log.listening(lambda one: traffic.note("any", one)):
            session = platform.create_session("echo")
            list(platform.run_sse(session, "hello"))
            with platform.mcp() as client:
                client.tools()
        platform.delete_session(session)

    assert {"API session": 1, "MCP session": 1} == traffic.summed().made
    assert {"any": (platform_server.url,)} == traffic.summed().addresses
    assert 6 == traffic.requests  # MCP: initialize, initialized, tools/list, and its end
