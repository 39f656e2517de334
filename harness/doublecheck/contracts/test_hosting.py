"""Checks of hosted runtimes (HST)."""

from __future__ import annotations

import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import hosting, wire
from doublecheck.contracts.a2a import Agent
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.hosting import Hosted
from doublecheck.contracts.verdicts import Verdict
from doublecheck.wire import calls

IDLE_MINUTES = 60  # longer than any double waits (U-SCALE-IDLE)


@clause("HST-01")
def test_sessions_share_one_environment(hosted: Hosted) -> None:
    """While one session's answer is streamed, another's request is answered in the same process."""
    app, gate = hosted.at(hosting.SIMPLE), uuid.uuid4().hex
    one, other = (_session() for _ in range(2))

    with closing(
        app.stream("", do="stream", chunks=["begun", "done"], gate=gate, headers=one)
    ) as events:
        first = next(events)
        places = [_where(app, session) for session in (one, other)]
        for _ in range(2):
            wire.invoke(app, {"do": "release", "gate": gate}, one)
        said = [wire.chunk(event.data) for event in (first, *events)]

    assert ["begun", "done"] == said
    assert [one["session_id"], other["session_id"]] == [place["session"] for place in places]
    assert 1 == len({place["environment"] for place in places}), places


@clause("HST-02")
def test_who_is_idle_is_scaled_to_zero_and_comes_back(hosted: Hosted, platform: Platform) -> None:
    """No instance is left after the idle time; the next request is answered by a new one."""
    if not platform.target.admin:
        pytest.skip(f"{Verdict.NOT_RUN.value}: waits until the platform scales to zero")
    app = hosted.at(hosting.SIMPLE)
    before = _where(app, _session())
    deadline = time.monotonic() + hosting.SEEN_WITHIN_S

    platform.clock.advance(minutes=IDLE_MINUTES)
    while (left := hosted.instances(hosting.SIMPLE)) and time.monotonic() < deadline:
        pass
    after = _where(app, _session())

    assert () == left
    assert before["environment"] != after["environment"]


@clause("HST-03")
def test_nothing_of_a_neighbour_is_reached(hosted: Hosted) -> None:
    """The neighbour's files and environment cannot be read, nor its process signalled.

    The neighbour reports where they are; the other runtime then tries.
    """
    neighbour = hosted.at(hosting.NEIGHBOUR)
    told = wire.json_of(wire.invoke(neighbour, {"do": "hide"}))
    try:
        answer = wire.invoke(hosted.at(hosting.SIMPLE), {"do": "spy", "neighbour": told})
    finally:
        wire.invoke(neighbour, {"do": "forget"})

    assert told["files"], "the neighbour could not write a file"
    assert [] == json.loads(wire.returned(answer))


@clause("HST-04")
def test_what_an_application_prints_is_in_its_logs(hosted: Hosted) -> None:
    """Standard output and standard error are in the logs of the application's own runtime."""
    text = f"printed {uuid.uuid4().hex}"
    deadline = time.monotonic() + hosting.SEEN_WITHIN_S

    wire.invoke(hosted.at(hosting.SIMPLE), {"do": "print", "prompt": text})
    while (logs := hosted.logs(hosting.SIMPLE)).count(text) < 2 and time.monotonic() < deadline:
        pass

    assert 2 == logs.count(text), logs


@clause("HST-04")
def test_requests_durations_and_errors_are_counted(hosted: Hosted, platform: Platform) -> None:
    """Each runtime counts two more requests, one failure, and the time that they took."""
    if not platform.target.admin:
        pytest.skip(f"{Verdict.NOT_OBSERVABLE.value}: where a platform shows its figures is open")
    app = hosted.at(hosting.SIMPLE)
    wire.invoke(app, {"do": "say", "prompt": ""})
    before = _figures(platform)

    for do in ("say", "fail"):
        wire.invoke(app, {"do": do, "prompt": "it broke"})
    after = _figures(platform)

    grown = {name: after[name] - before.get(name, 0) for name in after}
    assert grown.pop("seconds", 0) > 0, grown
    counted = {name: value for name, value in grown.items() if value}
    assert {"200": 1, "500": 1, "durations": 2, "errors": 1} == counted


@clause("HST-05")
def test_each_kind_of_application_speaks_its_protocol(hosted: Hosted) -> None:
    """One application of each kind, HTTP, MCP and A2A, answers a request."""
    apps = [hosted.at(one) for one in (hosting.SIMPLE, hosting.TOOLS, hosting.EXECUTOR)]

    with ThreadPoolExecutor(3) as pool:  # they start at the same time
        asked = zip((_invoke, _call, _send), apps, strict=True)
        answers = [pool.submit(ask, app) for ask, app in asked]

    assert ["over HTTP", "5", "over A2A"] == [answer.result() for answer in answers]


def _session() -> dict[str, str]:
    return {"user_id": "doublecheck", "session_id": uuid.uuid4().hex}


def _where(app: Platform, session: dict[str, str]) -> dict[str, Any]:
    return wire.parsed(wire.returned(wire.invoke(app, {"do": "where"}, session)))


def _figures(platform: Platform) -> dict[str, float]:
    """Return a double's metrics of the runtime: requests by status, durations, errors.

    A request is counted only after its answer has also ended inside the double.
    """
    deadline = time.monotonic() + hosting.SEEN_WITHIN_S
    while (found := _counted(platform)).pop("in flight", 0) and time.monotonic() < deadline:
        pass
    return found


def _counted(platform: Platform) -> dict[str, float]:
    request = calls.request(platform.target, "GET", "/_emulator/metrics")
    lines = platform.send(request).text.splitlines()
    found: dict[str, float] = {}
    for name, labels, value in filter(None, map(_sample, lines)):
        if labels.get("runtime") != hosting.SIMPLE:
            continue
        figure = labels.get("status", "") if name == "requests_total" else _FIGURES.get(name)
        if figure:
            found[figure] = found.get(figure, 0) + value
    return found


_FIGURES = {
    "request_duration_seconds_count": "durations",
    "request_duration_seconds_sum": "seconds",
    "errors_total": "errors",
    "requests_in_flight": "in flight",
}


def _sample(line: str) -> tuple[str, dict[str, str], float] | None:
    """Read a line of Prometheus' text format, with labels of plain text."""
    if line.startswith("#") or "{" not in line:
        return None
    name, _, rest = line.removeprefix("agentdouble_runtime_").partition("{")
    labels, _, value = rest.rpartition("} ")
    pairs = (one.partition("=") for one in labels.split(","))
    return name, {key: text.strip('"') for key, _, text in pairs}, float(value)


def _invoke(app: Platform) -> str:
    return wire.returned(wire.invoke(app, {"do": "say", "prompt": "over HTTP"}))


def _call(app: Platform) -> str:
    with app.mcp() as mcp:
        return mcp.call("add", a=2, b=3).text


def _send(app: Platform) -> str:
    return "".join(Agent.of(app).send("say over A2A").texts)
