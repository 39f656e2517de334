from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from httpx_sse import EventSource, ServerSentEvent

from agentdouble import Emulator
from tests.agentdouble.calling import (
    act,
    act_on_session,
    background,
    body_of,
    call,
    http,
    sessions_of,
    text,
)


@contextmanager
def following(double: Emulator, **query: str) -> Iterator[Any]:
    """Follow the events of a double."""
    address = f"{double.url}/_emulator/events"
    with http.stream("GET", address, params=query) as response:
        assert 200 == response.status_code, response.read()
        yield EventSource(response).iter_sse()


@contextmanager
def listening(double: Emulator, **query: str) -> Iterator[Iterator[ServerSentEvent]]:
    """Follow events from now on."""
    with following(double, **query) as events:
        assert "listening" == next(events).event
        yield events


def until(events: Iterator[ServerSentEvent], name: str, happened: str) -> dict[str, Any]:
    """Return the data of the first event with that name that reports this."""
    for event in events:
        data: dict[str, Any] = json.loads(event.data)
        if event.event == name and happened in data["happened"]:
            return data
    raise AssertionError(f"The stream ended without {name} {happened}.")


def test_a_request_is_published_before_its_answer(double: Emulator) -> None:
    """An open request has no status or duration."""
    double.faults.arm("delay", "/ping", seconds=30)
    with listening(double) as events, ExitStack() as stack:
        stack.callback(double.faults.clear)
        request = http.build_request("GET", f"{double.url}/ping")

        answer = background(lambda: http.send(request))
        opened = until(events, "request", "opened")
        double.faults.clear()
        event = until(events, "request", "answered")
        answer.result()

    assert (["opened"], None, None) == (
        opened["happened"],
        opened["status"],
        opened["duration_ms"],
    )
    assert (opened["id"], 200) == (event["id"], event["status"])


def test_the_life_of_a_session_is_published(double: Emulator) -> None:
    """Events have the same fields as the list of sessions."""
    address = f"{double.url}/_emulator/sessions"
    with listening(double, only="session") as events:
        text(double, "1")
        event = until(events, "session", "begun")
        (session,) = http.get(address).json()["sessions"]
        own = session["SessionId"]
        act_on_session(double, "PauseSession", own)
        paused = until(events, "session", "paused")
        act_on_session(double, "ResumeSession", own)
        until(events, "session", "resumed")
        act_on_session(double, "SetSessionTtl", own, Ttl=60, TtlUnit="second")
        until(events, "session", "ttl")
        double.clock.advance(minutes=2)
        ended = until(events, "session", "ended")

    (listed,) = http.get(address).json()["ended"]
    assert event.keys() - {"happened"} == session.keys()
    assert (session["SessionId"], "paused") == (paused["SessionId"], paused["state"])
    assert listed == {name: value for name, value in ended.items() if name != "happened"}


def test_clock_faults_and_unknowns_are_published(double: Emulator) -> None:
    """Changes by request or from Python both count."""
    with listening(double) as events:
        double.clock.advance(minutes=5)
        moved = until(events, "clock", "moved")
        with double.clock.freeze():
            assert until(events, "clock", "frozen")["frozen"]
        assert not until(events, "clock", "unfrozen")["frozen"]
        armed = double.faults.arm("fail", "ping", status=503)
        until(events, "fault", "armed")
        http.get(f"{double.url}/ping")
        fired = until(events, "fault", "fired")
        double.faults.disarm(armed.id)
        until(events, "fault", "removed")
        http.put(f"{double.url}/_emulator/unknowns", json={"U-TTL-EXTENDS": "sliding"})
        chosen = until(events, "unknowns", "chosen")
        http.put(f"{double.url}/_emulator/unknowns", json={})

    assert dt.timedelta(minutes=5).total_seconds() == moved["offset_s"]
    assert (armed.id, 1) == (fired["id"], fired["fired"])
    assert "sliding" == chosen["in_force"]["U-TTL-EXTENDS"]


def test_changes_of_tools_are_published(double: Emulator) -> None:
    """This covers create, update, delete and reset."""
    with listening(double) as events:
        tool = act(double, "CreateTool", Name="told", ToolType="CodeEnv")["ToolId"]
        created = until(events, "tool", "created")
        act(double, "UpdateTool", ToolId=tool, Description="other")
        until(events, "tool", "changed")
        act(double, "DeleteTool", ToolId=tool)
        deleted = until(events, "tool", "deleted")
        double.reset()
        reset = until(events, "double", "reset")
        cleared = http.delete(f"{double.url}/_emulator/journal")
        until(events, "journal", "cleared")

    assert cleared.is_success
    assert created == {"happened": ["created"], "id": tool, "name": "told"}
    assert deleted["id"] == tool
    assert {"happened": ["reset"]} == reset


def test_simultaneous_changes_are_one_event(double: Emulator) -> None:
    """It has the final state and every change."""
    with listening(double, only="session,double") as events:
        text(double, "1")
        until(events, "session", "idle")
        (session,) = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]

        async def change() -> None:

            sessions = sessions_of(double)
            (session,) = sessions.living()
            for _ in range(1000):
                sessions.pause(session)
                sessions.resume(session)
            sessions.pause(session)

        double._call(change())
        event = until(events, "session", "paused")

    assert (session["SessionId"], "paused") == (event["SessionId"], event["state"])
    assert ["resumed", "paused"] == event["happened"]


@pytest.mark.slow
def test_a_stream_ends_when_the_double_stops() -> None:
    """Pending events are sent first, and the connection closes cleanly."""
    with Emulator() as double, ExitStack() as stack:
        events = stack.enter_context(listening(double))
        call(double, body_of(double, "1"))
        double.stop()

        names = [event.event for event in events]

    assert {"request", "session"} <= set(names)


def test_a_slow_listener_learns_that_it_missed_events(double: Emulator) -> None:
    """It loses its queue and delays no other listener."""
    bus = double._platform.context.events

    async def happen(round_: int) -> None:
        for number in range(40):
            bus.publish("clock", f"{round_}-{number}", "moved", lambda: {"pad": "x" * 100_000})
        bus._send()

    with listening(double) as events:
        for round_ in range(12):  # 48 MB: more than wait for a client and the buffers of a socket
            double._call(happen(round_))
        names = [next(events).event]
        while names[-1] != "resync":
            names.append(next(events).event)
        http.get(f"{double.url}/ping")
        until(events, "request", "answered")

    assert len(names) < 12 * 40
