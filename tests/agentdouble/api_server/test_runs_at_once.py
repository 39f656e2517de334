"""Concurrent runs, disconnecting clients, and agents that block or never end."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import httpx
import pytest

from agentdouble import Emulator
from agentdouble.server import application_loop
from tests.agentdouble.api_server.wire import (
    AGENTS,
    create,
    event,
    generalised,
    lines,
    new_user,
    read,
    run,
    run_body,
    sessions_of,
    texts,
)
from tests.agentdouble.calling import background, eventually, http

WITHIN_S = 60
BESIDE = "agentdouble-app"  # the threads in which agents run
ABORTED = event(errorCode="INVOCATION_ABORTED", errorMessage="Invocation was aborted by client.")


@contextmanager
def streaming(url: str, body: Any) -> Iterator[httpx.Response]:
    """POST /run_sse and read the stream; leaving the block disconnects."""
    with (
        httpx.Client(timeout=WITHIN_S, trust_env=False) as client,
        client.stream("POST", f"{url}/run_sse", json=body) as response,
    ):
        yield response


def history_until(double: Emulator, user: str, count: int) -> list[Any]:
    """Return the history once it has this many events."""

    def look() -> list[Any]:
        events: list[Any] = read(double.url, user, "s1", "scripted")["events"]
        return events

    return eventually(look, lambda events: len(events) >= count)


def test_events_are_streamed_as_they_are_produced(agents: Emulator, scripted: ModuleType) -> None:
    """API-09: each increment arrives in a separate chunk before the next is produced."""
    user = new_user()
    create(agents.url, user, {"sessionId": "s1"}, "scripted")
    body = {**run_body(user, do="steps", name=user, count=3), "streaming": True}

    events_seen = []
    with streaming(agents.url, body) as response:
        for number, chunk in enumerate(response.iter_raw()):
            events_seen.append(texts([json.loads(chunk.removeprefix(b"data: "))])[0])
            scripted.go[f"{user}-{number}"].set()

    assert ["0 ", "1 ", "2 ", "0 1 2 "] == events_seen


@pytest.mark.parametrize("route", ["/run", "/run_sse"])
def test_disconnecting_client_aborts_its_run(
    agents: Emulator, scripted: ModuleType, route: str
) -> None:
    """The agent is cancelled, and the history says so; earlier events are kept."""
    user = new_user()
    create(agents.url, user, {"sessionId": "s1"}, "scripted")

    post_and_leave(agents, route, run_body(user, do="wait", name=user), scripted.started[user])

    assert scripted.ended[user].wait(WITHIN_S)
    events = history_until(agents, user, 3)
    assert [event("begun"), ABORTED] == generalised(events[1:])
    assert events[0]["invocationId"] == events[2]["invocationId"]
    assert 200 == run(agents.url, run_body(user, do="say", texts=["next"])).status_code


def test_runs_of_one_session_are_serialized(agents: Emulator, scripted: ModuleType) -> None:
    """U-RUN-CONCURRENT: in arrival order, so that a history never mixes two turns."""
    user = new_user()
    create(agents.url, user, {"sessionId": "s1"}, "scripted")

    first = background(lambda: run(agents.url, run_body(user, do="wait", name=user)))
    assert scripted.started[user].wait(WITHIN_S)
    with streaming(agents.url, run_body(user, do="say", texts=["second"])) as second:
        waiting = len(read(agents.url, user, "s1", "scripted")["events"])
        scripted.go[user].set()
        second.read()

    assert 2 == waiting
    assert ["begun", "gone on"] == texts(first.result(WITHIN_S).json())
    authors = [event["author"] for event in read(agents.url, user, "s1", "scripted")["events"]]
    assert ["user", "scripted", "scripted", "user", "scripted"] == authors


def test_ledger_can_interleave_runs() -> None:
    """U-RUN-CONCURRENT: like the real server in memory."""
    with Emulator(agents=AGENTS, unknowns={"U-RUN-CONCURRENT": "interleaved"}) as double:
        create(double.url, "ann", {"sessionId": "s1"}, "scripted")
        run(double.url, run_body("ann", do="say", texts=[]))
        scripted = sys.modules["scripted"]
        first = background(lambda: run(double.url, run_body("ann", do="wait", name="mixed")))
        assert scripted.started["mixed"].wait(WITHIN_S)
        history_until(double, "ann", 3)  # both messages, and "begun"
        second = run(double.url, run_body("ann", do="say", texts=["second"]))
        scripted.go["mixed"].set()
        first.result(WITHIN_S)
        history = texts(read(double.url, "ann", "s1", "scripted")["events"])

    assert ["second"] == texts(second.json())
    assert ["begun", "second", "gone on"] == [text for text in history if "do" not in text]


def test_blocking_agent_blocks_no_other_run(agents: Emulator, scripted: ModuleType) -> None:
    """Neither the server nor another session's run of the same agent."""
    user = new_user()
    create(agents.url, user, {"sessionId": "s1"}, "scripted")
    create(agents.url, user, {"sessionId": "s2"}, "scripted")

    blocked = background(lambda: run(agents.url, run_body(user, do="block", name=user)))
    assert scripted.started[user].wait(WITHIN_S)
    listed = http.get(f"{agents.url}/list-apps").status_code
    other = texts(run(agents.url, run_body(user, "s2", do="say", texts=["free"])).json())
    scripted.go[user].set()

    assert (200, ["free"]) == (listed, other)
    assert ["gone on"] == texts(blocked.result(WITHIN_S).json())


def test_double_stops_while_an_agent_blocks(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its thread cannot be ended and is abandoned, and the log says so."""
    monkeypatch.setattr(application_loop, "STOP_WITHIN_S", 0.1)
    before = set(threading.enumerate())
    with Emulator(agents=AGENTS) as double:
        create(double.url, "ann", {"sessionId": "s1"}, "scripted")
        run(double.url, run_body("ann", do="say", texts=[]))
        scripted = sys.modules["scripted"]
        body = run_body("ann", do="block", name="stopping")
        job = background(lambda: post_and_leave(double, "/run", body, scripted.started["stopping"]))
        job.result(WITHIN_S)
        new = {thread for thread in set(threading.enumerate()) - before if thread.name == BESIDE}

    assert "blocks its thread, which is left behind" in caplog.text
    scripted.go["stopping"].set()
    for thread in new:
        thread.join(WITHIN_S)
    assert new
    assert [] == [thread for thread in new if thread.is_alive()]


def test_endless_agent_waits_for_a_slow_client(agents: Emulator, scripted: ModuleType) -> None:
    """Backpressure holds it, and it ends with its client; other sessions are served."""
    user = new_user()
    create(agents.url, user, {"sessionId": "s1"}, "scripted")
    body = {**run_body(user, do="endless", name=user), "streaming": True}

    with _connected(agents, "/run_sse", body) as connection:
        assert scripted.started[user].wait(WITHIN_S)
        read_slowly = b"".join(connection.recv(1) for _ in range(500))
        elsewhere = http.get(f"{agents.url}/list-apps").status_code

    assert read_slowly.startswith(b"HTTP/1.1 200 OK\r\n")
    assert 200 == elsewhere
    assert scripted.ended[user].wait(WITHIN_S)
    assert [ABORTED] == generalised(history_until(agents, user, 2)[1:])


@pytest.mark.parametrize("route", ["/run", "/run_sse"])
def test_session_can_be_deleted_during_its_run(
    agents: Emulator, scripted: ModuleType, route: str
) -> None:
    """404, or an error as the last line; the agent is cancelled, the session stays deleted."""
    user = new_user()
    create(agents.url, user, {"sessionId": "s1"}, "scripted")

    running = background(
        lambda: http.post(agents.url + route, json=run_body(user, do="wait", name=user))
    )
    assert scripted.started[user].wait(WITHIN_S)
    http.delete(f"{agents.url}{sessions_of(user, 'scripted')}/s1")
    scripted.go[user].set()
    response = running.result(WITHIN_S)

    if route == "/run":
        assert (404, {"detail": "Session s1 not found."}) == (
            response.status_code,
            response.json(),
        )
    else:
        assert "SessionNotFoundError: Session s1 not found." == lines(response)[-1]["error"]
    assert 404 == http.get(f"{agents.url}{sessions_of(user, 'scripted')}/s1").status_code


def post_and_leave(double: Emulator, route: str, body: Any, until: threading.Event) -> None:
    with _connected(double, route, body):
        assert until.wait(WITHIN_S)


@contextmanager
def _connected(double: Emulator, route: str, body: Any) -> Iterator[socket.socket]:
    """Send a request over a connection that reads nothing by itself."""
    host, _, port = double.url.removeprefix("http://").partition(":")
    content = json.dumps(body).encode()
    head = (
        f"POST {route} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), timeout=WITHIN_S) as connection:
        connection.sendall(head.encode() + content)
        yield connection
