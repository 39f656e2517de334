from __future__ import annotations

from typing import Any

import pytest

from agentdouble.mcp_services import CommandBackend
from tests.agentdouble import mcp_wire
from tests.agentdouble.mcp_services.stdio.conftest import (
    KEY,
    Services,
    call,
    processes,
)


@pytest.fixture(scope="module")
def untouched(services: Services) -> tuple[str, str]:
    """The address of another service, and a session of it."""
    url = services.make("untouched")
    return url, mcp_wire.open_session(url, KEY)


def error(answer: Any) -> str:
    """Return the message of the error that ends an answer."""
    return str(mcp_wire.replies(answer)[-1]["error"]["message"])


def in_session(url: str, session: str, tool: str, **arguments: Any) -> str:
    """Call a tool in a session and return the error."""
    sent = mcp_wire.message("tools/call", {"name": tool, "arguments": arguments})
    return error(mcp_wire.post(url, sent, KEY, session))


def test_crashed_server_is_restarted(services: Services, untouched: tuple[str, str]) -> None:
    """The call fails, the session is unknown, and a new one has a new process."""
    url = services.make("dying")
    session = mcp_wire.open_session(url, KEY)

    message = in_session(url, session, "stop")

    assert (
        "The server of the MCP service 'dying' ended with code 3. "
        "What it printed: /_emulator/mcp-services/dying/logs"
    ) == message
    assert 404 == mcp_wire.post(url, mcp_wire.message("ping"), KEY, session).status_code
    assert "back" == call(url, mcp_wire.open_session(url, KEY), "echo", word="back")
    assert "goodbye" in services.log("dying")
    assert "its process ended with code 3" in services.log("dying")
    assert "here" == call(*untouched, "echo", word="here")


@pytest.mark.slow
def test_call_that_is_never_answered_times_out(services: Services) -> None:
    """The server is notified, and serves others."""
    url = services.make("silent", timeout_s=2)
    session = mcp_wire.open_session(url, KEY)

    message = in_session(url, session, "silent")

    assert "The server of the MCP service 'silent' has not answered for 2 s." in message
    assert "1" == call(url, session, "remembered", what="cancelled")


def test_lines_that_are_not_messages_are_logged(services: Services) -> None:
    """Many servers print greetings; the call is answered all the same."""
    url = services.make("greeting")
    session = mcp_wire.open_session(url, KEY)

    sent = mcp_wire.message("tools/call", {"name": "garbage", "arguments": {"lines": 2}})
    assert "done" == mcp_wire.result(mcp_wire.post(url, sent, KEY, session))["content"][0]["text"]
    log = services.log("greeting")
    assert "wrote a line to its standard output that is not JSON-RPC: 'Listening ... 0'" in log
    assert "stdout Listening ... 1" in log


def test_large_answers_pass_and_larger_ones_end_the_process(services: Services) -> None:
    """A message of 13 MB is passed on; the length of a line is limited."""
    url = services.make("large")
    session = mcp_wire.open_session(url, KEY)

    assert 13_000_000 == len(call(url, session, "large", size=13_000_000))
    assert "wrote a line of more than 16 MiB." in in_session(url, session, "large", size=17 << 20)


@pytest.mark.slow
def test_flooding_server_waits_for_its_client(
    services: Services, untouched: tuple[str, str]
) -> None:
    """Unread output is not buffered, and others are served meanwhile."""
    url = services.make("flood")
    session = mcp_wire.open_session(url, KEY)
    sent = mcp_wire.message("tools/call", {"name": "flood", "arguments": {}})
    with mcp_wire.streamed(url, KEY, session, sent) as (_, events):
        first = next(events)
        assert "here" == call(*untouched, "echo", word="here")
    assert ["here"] * 20 == [call(*untouched, "echo", word="here") for _ in range(20)]
    services.double.mcp.delete("flood")

    assert "notifications/message" == first["method"]
    assert [] == processes("flood")


def test_missing_command_is_an_error(services: Services) -> None:
    """The caller learns that it ended, and the log says why."""
    services.double.mcp.create("nothing", CommandBackend(("no-such-program",)), key=KEY)
    url = f"{services.double.url}/mcp/nothing"

    message = error(mcp_wire.post(url, mcp_wire.INITIALIZE, KEY))

    assert "The server of the MCP service 'nothing' ended with code 127." in message
    assert "program 'no-such-program' not found" in services.log("nothing")


def test_excess_sessions_end_the_oldest(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that never ends its sessions stays within its share."""
    monkeypatch.setattr("agentdouble.mcp_services.commands.MOST_SESSIONS", 2)
    url = services.make("many")
    sessions = [mcp_wire.open_session(url, KEY) for _ in range(3)]

    answers = [mcp_wire.post(url, mcp_wire.message("tools/list"), KEY, id_) for id_ in sessions]

    assert [404, 200, 200] == [answer.status_code for answer in answers]
    assert 2 == len(processes("many"))
