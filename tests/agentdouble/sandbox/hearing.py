"""Listen to the output feed of a session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from httpx_sse import EventSource

from agentdouble import Emulator
from tests.agentdouble.calling import http

Heard = tuple[str, dict[str, Any]]


@contextmanager
def listening(double: Emulator, session: str) -> Iterator[Iterator[Heard]]:
    """Listen to a session; yield the events after the first, `listening`."""
    query = {"user_session_id": session}
    with http.stream("GET", f"{double.url}/_emulator/outputs", params=query) as response:
        assert 200 == response.status_code
        events = ((e.event, json.loads(e.data)) for e in EventSource(response).iter_sse())
        assert ("listening", {}) == next(events)
        yield events


def to_the_end(events: Iterator[Heard]) -> Iterator[Heard]:
    """Yield the events of one execution, joining consecutive pieces of stdout."""
    last: Heard | None = None
    for kind, data in events:
        if last is not None and _goes_on(last, (kind, data)):
            last[1]["content"]["text"] += data["content"]["text"]
            continue
        if last is not None:
            yield last
        last = kind, data
        if kind == "finished":
            yield last
            return


def _goes_on(before: Heard, after: Heard) -> bool:
    return all(
        kind == "output" and data["msg_type"] == "stream" and data["content"]["name"] == "stdout"
        for kind, data in (before, after)
    )
