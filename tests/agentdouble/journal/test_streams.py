"""Journal entries of WebSockets and streamed answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from websockets.sync.client import connect

from agentdouble import Emulator, SimpleApp
from tests.agentdouble.calling import data_plane, eventually, http

app = SimpleApp("slow")
_GO_ON = threading.Event()


@app.entrypoint
async def entrypoint(_payload: dict[str, Any], _headers: dict[str, str]) -> Any:
    yield "first"
    await asyncio.to_thread(_GO_ON.wait, 60)
    yield "second"


@pytest.fixture
def streaming() -> Iterator[Emulator]:
    with Emulator(app) as double:
        yield double


def last(double: Emulator) -> dict[str, Any]:
    entry: dict[str, Any] = http.get(
        f"{double.url}/_emulator/journal", params={"bodies": "true"}
    ).json()["entries"][-1]
    return entry


def test_a_stream_is_shown_while_it_runs(streaming: Emulator) -> None:
    """The entry has what was sent, without a duration."""
    _GO_ON.clear()
    headers = {"user_id": "ann", "session_id": "s1"}
    with http.stream("POST", f"{streaming.url}/invoke", json={}, headers=headers) as response:
        events = response.iter_lines()
        next(events)
        running = last(streaming)
        _GO_ON.set()
        assert any("second" in line for line in events)

    done = last(streaming)
    assert (200, None) == (running["status"], running["duration_ms"])
    assert "first" in running["response_body"]
    assert "second" not in running["response_body"]
    assert "second" in done["response_body"]
    assert 0 < running["sent_bytes"] < done["sent_bytes"]


def test_a_websocket_has_an_entry(double: Emulator) -> None:
    """It has the session, duration and bytes, but no token."""
    plane = data_plane(double)
    address = plane.url.replace("http", "ws", 1) + "/v1/shell/ws"
    with connect(f"{address}?{urlencode(plane.query)}", proxy=None) as socket:
        socket.recv()
        opened = last(double)

    closed = eventually(lambda: last(double), lambda entry: entry["duration_ms"])
    assert ("GET", 101, None) == (opened["method"], opened["status"], opened["duration_ms"])
    assert (opened["id"], plane.query["faasInstanceName"]) == (closed["id"], closed["session"])
    assert closed["sent_bytes"] > 0
    assert plane.query["Authorization"] not in str(closed)
