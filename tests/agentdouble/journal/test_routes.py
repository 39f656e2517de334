from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from websockets.sync.client import connect

from agentdouble import Emulator, SimpleApp
from tests.agentdouble.calling import data_plane, eventually, http, text


def read(double: Emulator, **query: Any) -> Any:
    return http.get(f"{double.url}/_emulator/journal", params=query).json()


def test_the_journal_is_read_page_by_page(double: Emulator) -> None:
    for _ in range(5):
        http.get(f"{double.url}/ping")

    first = read(double, limit=3)
    second = read(double, limit=3, after=first["last"])

    assert [(3, True), (2, False)] == [(len(p["entries"]), p["more"]) for p in (first, second)]
    ids = [entry["id"] for page in (first, second) for entry in page["entries"]]
    assert ids == sorted(set(ids))


def test_an_entry_by_id_is_complete(double: Emulator) -> None:
    """The list leaves out bodies by default."""
    text(double, "print('said')")
    (short,) = read(double)["entries"]

    entry = http.get(f"{double.url}/_emulator/journal/{short['id']}").json()

    assert "response_body" not in short
    assert "said" in entry["response_body"]
    assert [entry] == read(double, bodies="true")["entries"]
    assert short == {name: entry[name] for name in short}


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"method": "get"}, 2),
        ({"method": "POST"}, 1),
        ({"path": "/ping"}, 1),
        ({"status": "404"}, 1),
        ({"status": "200", "method": "POST"}, 1),
        ({"action": "InvokeTool"}, 1),
        ({"unknown": "U-SIGNING"}, 1),
        ({"unread": "Nothing"}, 0),
        ({"fault": "none"}, 0),
    ],
    ids=str,
)
def test_filters_select_entries(double: Emulator, query: dict[str, str], count: int) -> None:
    """They are combined."""
    http.get(f"{double.url}/ping")
    http.get(f"{double.url}/nowhere")
    text(double, "1")

    assert count == len(read(double, **query)["entries"])


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"limt": "1"}, "Did you mean limit?"),
        ({"nothing": "1"}, "It has after, limit, bodies, method"),
        ({"limit": "-1"}, "limit must be a whole number"),
        ({"after": "9" * 5000}, "after must be a whole number"),
        ({"bodies": "yes"}, "bodies must be true or false"),
    ],
    ids=str,
)
def test_an_invalid_query_is_refused(double: Emulator, query: dict[str, str], message: str) -> None:
    """The error lists the valid parameters."""
    answer = http.get(f"{double.url}/_emulator/journal", params=query)

    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "name",
    [
        "key",
        "api_key",
        "apiKey",
        "x-api-key",
        "access_token",
        "accessToken",
        "token",
        "client_secret",
    ],
)
def test_a_secret_in_a_query_is_hidden(
    double: Emulator, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Parameters are recognised by name, in the journal and the log."""
    with caplog.at_level("INFO", "agentdouble.journal.entries"):
        http.get(f"{double.url}/ping", params={name: "s3cret", "NextToken": "place"})

    (entry,) = read(double, bodies="true")["entries"]
    assert "s3cret" not in str(entry)
    assert "NextToken=place" in entry["url"]
    assert not [
        log
        for log in caplog.records
        if log.name == "agentdouble.journal.entries" and "s3cret" in log.getMessage()
    ]


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
