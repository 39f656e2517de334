from __future__ import annotations

import json

import psutil
import pytest

from agentdouble import Emulator
from tests.agentdouble import mcp_wire
from tests.agentdouble.calling import TIMEOUT_S
from tests.agentdouble.mcp_services.stdio.conftest import (
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
