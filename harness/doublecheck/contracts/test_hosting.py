"""Checks of hosted runtimes (HST)."""

from __future__ import annotations

import functools
import json
import re
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import hosting, inputs, wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.engine import at_once
from doublecheck.contracts.hosting import Hosted
from doublecheck.contracts.mcp_servers import structured_of
from doublecheck.contracts.sentences import instead, listed, short
from doublecheck.contracts.verdicts import Verdict, not_observable

SAID = "é 日本語 🦉"
PRINTED = (SAID, f"{SAID} {'0123456789' * 1000} end", "second", "a - Z0", SAID * 20, "last")
METRICS = "/_emulator/metrics"
IDLE_MINUTES = 60  # longer than any double waits (U-SCALE-IDLE)


@clause("HST-01")
def test_sessions_share_one_environment(hosted: Hosted) -> None:
    """While one session's answer is streamed, the same process answers another session's request."""
    app, gate = hosted.at(hosting.SIMPLE), uuid.uuid4().hex
    session, other = (_session() for _ in range(2))

    with closing(
        app.stream("", do="stream", chunks=["begun", "done"], gate=gate, headers=session)
    ) as events:
        first = next(events)
        places = [_where(app, session) for session in (session, other)]
        for _ in range(2):
            wire.invoke(app, {"do": "release", "gate": gate}, session)
        arrived = [event.data for event in (first, *events)]

    assert ["begun", "done"] == wire.chunks(arrived, ["begun", "done"]), (
        f"a stream of one session lost strings while another session asked: {listed(arrived)}"
    )
    assert [session["session_id"], other["session_id"]] == [place["session"] for place in places], (
        f"a session is answered as another one: {listed(place['session'] for place in places)}"
    )
    environments = {place["environment"] for place in places}
    assert 1 == len(environments), "two sessions at the same time have two environments"


@clause("HST-01")
def test_each_session_gets_its_own_answers(hosted: Hosted) -> None:
    """Many sessions, with unusual ids, are answered, even at the same time."""
    app = hosted.at(hosting.SIMPLE)
    many = [uuid.uuid4().hex for _ in range(inputs.MANY)]
    seen = [_where(app, {**_session(), "session_id": id_})["session"] for id_ in many]
    assert many == seen, f"other sessions are answered: {instead(seen, many)}"
    ids = [uuid.uuid4().hex + end for end in ("", "-A", "-a", "%41", "%2Fb", "_1", ".1")]
    sessions = [{"user_id": "doublecheck", "session_id": id_} for id_ in ids]

    alone = [_where(app, session)["session"] for session in sessions]
    together = at_once([functools.partial(_where, app, session) for session in sessions])

    assert ids == alone == [place["session"] for place in together], (
        f"a session is answered as another one: {instead(alone, ids)}"
    )


@clause("HST-02")
def test_who_is_idle_is_scaled_to_zero_and_comes_back(hosted: Hosted, platform: Platform) -> None:
    """After the idle time no instance remains; a new instance answers the next request."""
    if not platform.target.admin:
        pytest.skip(f"{Verdict.NOT_RUN.value}: waits until the platform scales to zero")
    app = hosted.at(hosting.SIMPLE)
    before = _where(app, _session())
    deadline = time.monotonic() + hosting.SEEN_WITHIN_S

    platform.clock.advance(minutes=IDLE_MINUTES)
    while (instances := hosted.instances(hosting.SIMPLE)) and time.monotonic() < deadline:
        pass
    after = _where(app, _session())

    assert () == instances, (
        f"after {IDLE_MINUTES} idle minutes there are still instances: {listed(instances)}"
    )
    assert before["environment"] != after["environment"], (
        "after the scaling to zero, the old process answers"
    )


@clause("HST-03")
def test_nothing_of_a_neighbour_is_reached(hosted: Hosted) -> None:
    """The neighbour's files and environment cannot be read, and its process cannot be signalled.

    The neighbour reports where they are; the other runtime then tries to reach them.
    """
    neighbour = hosted.at(hosting.NEIGHBOUR)
    secrets = wire.json_of(wire.invoke(neighbour, {"do": "hide"}))
    try:
        answer = wire.invoke(hosted.at(hosting.SIMPLE), {"do": "spy", "neighbour": secrets})
    finally:
        wire.invoke(neighbour, {"do": "forget"})

    assert secrets["files"], "the neighbour could not write a file"
    assert [] == json.loads(wire.returned(answer)), (
        "an application reaches what belongs to its neighbour"
    )


@clause("HST-04")
def test_what_an_application_prints_is_in_its_logs(hosted: Hosted) -> None:
    """Every line of standard output and standard error appears in the logs, complete."""
    printed = [f"{uuid.uuid4().hex} {line}" for line in PRINTED]
    wire.invoke(hosted.at(hosting.SIMPLE), {"do": "print", "prompt": "\n".join(printed)})

    deadline = time.monotonic() + hosting.SEEN_WITHIN_S
    while any((logs := hosted.logs(hosting.SIMPLE)).count(line) < 2 for line in printed):
        if time.monotonic() > deadline:
            break

    missing = [line for line in printed if logs.count(line) != 2]
    assert [] == missing, f"not twice in the logs: {listed(map(short, missing))}"


@clause("HST-04")
def test_requests_durations_and_errors_are_counted(hosted: Hosted, platform: Platform) -> None:
    """Each runtime counts its requests by status, its failures, and their durations."""
    if not platform.target.admin:
        not_observable("where a platform shows its metrics is open")
    app = hosted.at(hosting.SIMPLE)
    wire.invoke(app, {"do": "say", "prompt": ""})
    before, elsewhere = (_figures(platform, name) for name in (hosting.SIMPLE, hosting.NEIGHBOUR))

    for do in ("say", "fail", "say"):
        wire.invoke(app, {"do": do, "prompt": "it broke"})
    after = _figures(platform, hosting.SIMPLE)

    grown = after - before  # without what has not grown
    assert grown.pop("request_duration_seconds_sum", 0) > 0, "no durations are measured"
    expected = {"request_duration_seconds_count": 3, "errors_total": 1, "200": 2, "500": 1}
    assert expected == grown, f"wrong counts of requests: {instead(dict(grown), expected)}"
    assert elsewhere == _figures(platform, hosting.NEIGHBOUR), (
        "the metrics of another runtime have changed"
    )


@clause("HST-05")
def test_each_kind_of_application_speaks_its_protocol(hosted: Hosted) -> None:
    """One application each for HTTP, MCP and A2A answers several requests."""
    spoken = {hosting.SIMPLE: _speak_http, hosting.TOOLS: _speak_mcp, hosting.EXECUTOR: _speak_a2a}

    with ThreadPoolExecutor(len(spoken)) as pool:  # they start at the same time
        futures = [pool.submit(speak, hosted.at(name)) for name, speak in spoken.items()]

    for future in futures:
        future.result()


def _speak_http(app: Platform) -> None:
    """Invoke an application for a string, for what it received, and for a stream."""
    session, [payload, *_] = _session(), inputs.payloads().always
    text = wire.returned(wire.invoke(app, {"do": "say", "prompt": SAID}, session))
    assert SAID == text, f"/invoke returns {instead(text, SAID)}"

    for headers in inputs.HEADERS:
        for sent in (payload, {"prompt": "again"}):
            request = wire.invocation(app, sent, headers)
            for answer in (app.send(request), wire.send_in_parts(app, request)):
                received = wire.echoed(answer)
                assert wire.same(sent, received["payload"]), (
                    f"the payload arrives {instead(received['payload'], sent)}"
                )
                custom = {name: received["headers"].get(name) for name in headers}
                assert headers == custom, f"the headers arrive {instead(custom, headers)}"

    chunks = [SAID, *inputs.many("number {}")]
    streamed = app.stream("", do="stream", chunks=chunks, headers=session)
    assert chunks == wire.chunks([event.data for event in streamed], chunks), (
        "a stream lacks strings"
    )


def _speak_mcp(app: Platform) -> None:
    """List tools, call one twice in a session, and one with every kind of value."""
    [payload, *_] = inputs.payloads().always
    arguments = {"ratio": 0.5, "exact": True, "tags": [SAID, ""], "fields": payload}
    with app.mcp() as mcp:
        described = structured_of(mcp.call("describe", **arguments))
        names = {tool.name for tool in mcp.tools()}
        results = [mcp.call("join", first=SAID, second=end).text for end in "!?"]

    assert wire.same(arguments, described), f"arguments arrive {instead(described, arguments)}"
    assert {"add", "join"} <= names, f"add and join are not among the tools {listed(sorted(names))}"
    expected = [f"{SAID}!", f"{SAID}?"]
    assert expected == results, f"a tool returns another text: {instead(results, expected)}"


def _speak_a2a(app: Platform) -> None:
    """Send two messages to the agent of a card, and read their tasks again, if there are any."""
    agent = app.a2a()
    for text in (SAID, "again"):
        answer = agent.send(text)
        said = "".join(answer.texts)
        assert text == said, f"the A2A application answers another text: {instead(said, text)}"
        if answer.task_id:
            stored = agent.task(answer.task_id).texts
            assert answer.texts == stored, "the stored task has other texts than its answer"
            agent.send(json.dumps({"do": "forget", "name": answer.task_id}))


def _session() -> dict[str, str]:
    return {"user_id": "doublecheck", "session_id": uuid.uuid4().hex}


def _where(app: Platform, session: dict[str, str]) -> dict[str, Any]:
    return wire.parsed(wire.returned(wire.invoke(app, {"do": "where"}, session)))


_FIGURES = re.compile(
    r"agentdouble_runtime_(requests_total|request_duration_seconds_count|errors_total|"
    r"request_duration_seconds_sum|requests_in_flight)\{(.*)\} (\S+)"
)


def _figures(platform: Platform, runtime: str) -> Counter[str]:
    """Return a double's metrics of a runtime: requests by status, durations, errors.

    A request is counted only after its answer has ended inside the double as well.
    """
    deadline = time.monotonic() + hosting.SEEN_WITHIN_S
    while True:
        figures: Counter[str] = Counter()
        for name, labels, value in _FIGURES.findall(platform.request("GET", METRICS).text):
            if f'runtime="{runtime}"' in labels:
                status = re.search(r'status="(\d+)"', labels)
                figures[status[1] if status else name] += float(value)  # type: ignore[assignment]
        if not figures.pop("requests_in_flight", 0) or time.monotonic() > deadline:
            return figures
