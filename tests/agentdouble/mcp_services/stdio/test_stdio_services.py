from __future__ import annotations

import json
import sys
from typing import Any

import anyio
import httpx2
import psutil
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from agentdouble import Emulator
from agentdouble.mcp_services import CommandBackend
from tests.agentdouble import mcp_wire
from tests.agentdouble.calling import TIMEOUT_S
from tests.agentdouble.mcp_services.stdio.conftest import (
    HERE,
    KEY,
    Services,
    call,
    processes,
    text,
)

SECRET = "of-the-double"


@pytest.fixture(scope="module")
def url(services: Services) -> str:
    return services.make("handshake")


@pytest.fixture(scope="module")
def session(url: str) -> str:
    return mcp_wire.open_session(url, KEY)


def test_each_session_has_a_separate_process(url: str, session: str) -> None:
    """A server on standard streams has one client."""
    other = mcp_wire.open_session(url, KEY)

    call(url, session, "change", word="hé")

    message = mcp_wire.message("tools/list")
    lists = [mcp_wire.post(url, message, KEY, session_id) for session_id in (session, other)]
    names = [[tool["name"] for tool in mcp_wire.result(answer)["tools"]] for answer in lists]
    assert [["echo", "hé"], ["echo"]] == names
    assert 2 == len(processes("handshake"))


def test_deleting_a_session_ends_its_process(services: Services) -> None:
    """No process is left, and the id is unknown."""
    url = services.make("deleted")
    session = mcp_wire.open_session(url, KEY)
    alive = processes("deleted")
    assert len(alive) == 1

    ended = mcp_wire.http.delete(url, headers=mcp_wire.headers(KEY, session))

    assert 200 == ended.status_code
    assert ([*alive], []) == psutil.wait_procs(alive, timeout=TIMEOUT_S)
    assert 404 == mcp_wire.post(url, mcp_wire.message("ping"), KEY, session).status_code


def test_deleting_a_service_ends_its_processes() -> None:
    """So does stopping the double."""
    with Emulator(pool_size=0) as double:
        services = Services(double)
        mcp_wire.open_session(services.make("gone"), KEY)
        mcp_wire.open_session(services.make("left"), KEY)
        alive = processes("gone") + processes("left")
        assert len(alive) == 2
        double.mcp.delete("gone")
        assert [] == processes("gone")

    assert not any(process.is_running() for process in alive)


def test_notifications_arrive_in_the_answer_of_their_request(url: str, session: str) -> None:
    """Progress and log messages precede the result, as from a server behind HTTP."""
    params = {"name": "progress", "arguments": {}, "_meta": {"progressToken": "p"}}
    answer = mcp_wire.post(url, mcp_wire.message("tools/call", params), KEY, session)

    progress, log, result = mcp_wire.replies(answer)

    assert {"progressToken": "p", "progress": 1} == progress["params"]
    assert {"level": "info", "data": "half"} == log["params"]
    assert "done" == text(result["result"])


def test_server_can_ask_the_caller(url: str, session: str) -> None:
    """The request arrives in the call's stream, and the caller's answer returns to it."""
    message = mcp_wire.message("tools/call", {"name": "ask", "arguments": {}})
    with mcp_wire.streamed(url, KEY, session, message) as (_, events):
        question = next(events)
        reply = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
        assert 202 == mcp_wire.post(url, reply, KEY, session).status_code
        result = next(events)

    assert ("elicitation/create", {"message": "Why?"}) == (question["method"], question["params"])
    assert {"action": "decline"} == json.loads(text(result["result"]))


def test_early_server_messages_wait_for_the_client(services: Services) -> None:
    """Servers request roots at once, and clients listen a moment later."""
    url = services.make("early")
    session = mcp_wire.open_session(url, KEY)
    with mcp_wire.streamed(url, KEY, session) as (_, events):
        question = next(events)
        reply = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}
        assert 202 == mcp_wire.post(url, reply, KEY, session).status_code

    assert "roots/list" == question["method"]
    assert {"roots": []} == json.loads(call(url, session, "remembered", what="answered"))


def test_server_may_write_to_its_service_s_home(services: Services) -> None:
    """Its arguments name it, and its processes share it."""
    url = services.make("writing", "$HOME")
    sessions = [mcp_wire.open_session(url, KEY) for _ in range(2)]
    home = json.loads(call(url, sessions[0], "environment"))["HOME"]

    assert "4" == call(url, sessions[0], "write", name="note")
    assert "note" == call(url, sessions[1], "read", path=f"{home}/note")
    assert "visible_paths" not in services.log("writing")


def test_process_is_confined_and_isolated_from_the_double(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has its own variables, a home directory, and no credentials."""
    monkeypatch.setenv("AGENTDOUBLE_TEST_SECRET", SECRET)
    url = services.make("confined", environment={"OWN": "value"})
    session = mcp_wire.open_session(url, KEY)

    environment = json.loads(call(url, session, "environment"))

    assert "value" == environment.pop("OWN")
    assert not environment.keys() - {
        *("HOME", "TMPDIR", "USER", "LOGNAME", "PATH", "VIRTUAL_ENV", "PYTHONUNBUFFERED"),
        *("LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPATH"),
    }


def test_version_without_sessions_is_refused(url: str) -> None:
    """A client of both versions then opens a session."""
    answer = mcp_wire.http.post(
        url, json=mcp_wire.modern("echo", {}), headers=mcp_wire.modern_headers(KEY, "echo")
    )

    status, message = mcp_wire.error(answer)
    assert (400, True) == (status, "Unsupported protocol version: 2026-07-28." in message)


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


@pytest.mark.slow
def test_official_client_uses_the_official_server(services: Services) -> None:
    """In a session, whichever request is first; progress precedes the result."""
    backend = CommandBackend((sys.executable, "sdk_server.py"), HERE)
    services.double.mcp.create("sdk", backend, key=KEY)
    url = f"{services.double.url}/mcp/sdk"
    messages: list[Any] = []

    async def progress(now: float, total: float | None, _message: str | None) -> None:
        messages.append((now, total))

    async def use(mode: str) -> None:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            messages.append(client.protocol_version)
            messages.append([tool.name for tool in (await client.list_tools()).tools])
            added = await client.call_tool("add", {"a": 1, "b": 2}, progress_callback=progress)
            messages.append(added.structured_content)

    for mode in ("auto", "legacy"):
        anyio.run(use, mode)

    assert 2 * ["2025-11-25", ["add"], (1, 2), {"result": 3}] == messages
