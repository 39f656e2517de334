"""Checks of POST /invoke: what reaches the entrypoint, and what it returns (INV)."""

from __future__ import annotations

import functools
import json
import re
import uuid
from contextlib import closing
from typing import Any

import pytest
from hypothesis import strategies as st

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import inputs, wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.engine import at_once, for_each
from doublecheck.contracts.inputs import Input
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.contracts.sentences import instead, listed, short
from doublecheck.errors import UnreachableError
from doublecheck.wire import event_stream

Headers = dict[str, str]

BOTH = {"user_id": "the-user", "session_id": "the-session"}
STRINGS = Input(
    inputs.texts(carriage_returns=True).strategy.map(lambda text: f"{text}\0\x1b\x7f{text}"),
    (
        f"{inputs.texts(carriage_returns=True).always[0]}\0\x1b\x7f",
        *("", "null", "0", "```python\n1\n```", '{"a": [1, null]}', "true"),
    ),
)
EXCEPTIONS: tuple[dict[str, Any], ...] = (
    {"do": "fail", "prompt": "it broke"},
    {"do": "say"},  # a KeyError: the prompt is missing
    {"do": "an unknown action", "prompt": ""},  # a ValueError
    {"do": "fail_late", "prompt": "it broke", "chunks": ["one", "two"]},  # a stream
)
BROKEN_BODIES = (
    *(b"", b" ", b"{", b"hello", b"\xff\xfe", b"prompt=hello&a=b"),
    *(b"{'prompt': 'hello'}", b'{"prompt": "hello",}', b'{"prompt": "hello"'),
    *(b'{"prompt": "hello"} {"prompt": "hello"}', b'{prompt: "hello"}', b'{"prompt": "\xff"}'),
)
NO_ERRORS = ("", "null", "{}", "[]", '""')


@clause("INV-01")
@for_each(payload=inputs.payloads())
def test_the_payload_reaches_the_entrypoint(platform: Platform, payload: dict[str, Any]) -> None:
    """The entrypoint receives the prompt and every other field as sent."""
    received = wire.echo(platform, payload)["payload"]
    assert wire.same(payload, received), f"the payload arrives {instead(received, payload)}"


@clause("INV-01")
def test_a_body_in_parts_reaches_the_entrypoint(platform: Platform) -> None:
    """A body whose length is not announced arrives complete."""
    [payload, *_] = inputs.payloads().always

    answer = wire.send_in_parts(platform, wire.invocation(platform, payload))

    assert wire.same(payload, wire.echoed(answer)["payload"]), "a chunked body arrives otherwise"


@clause("INV-02")
@for_each(headers=inputs.headers())
def test_the_headers_reach_the_entrypoint(platform: Platform, headers: Headers) -> None:
    """The entrypoint receives the three named headers and custom ones, and none of other requests."""
    other_headers = {name: f"{value}-2" for name, value in headers.items() if name in wire.NAMED}
    other_headers["session_id"] = headers["session_id"]
    customs = set(headers) - set(wire.NAMED)

    received = wire.echo(platform, {"prompt": ""}, headers)["headers"]
    again = wire.echo(platform, {"prompt": "again"}, headers)
    next_seen = wire.echo(platform, {"prompt": ""}, other_headers)["headers"]
    callers = {name: other_headers[name] for name in ("user_id", "session_id")}
    last = wire.echo(platform, {"prompt": ""}, callers)["headers"]

    for sent, seen in (
        (headers, received),
        (headers, again["headers"]),
        (other_headers, next_seen),
    ):
        actual = {name: seen.get(name) for name in sent}
        assert sent == actual, f"the headers arrive {instead(actual, sent)}"
    kept = customs & {*next_seen, *last}
    assert set() == kept, f"a request has headers of an earlier one: {listed(sorted(kept))}"
    earlier = (headers["request_id"], other_headers["request_id"])
    assert last.get("request_id") not in earlier, "a request has the request_id of an earlier one"
    assert "again" == again["payload"]["prompt"], "the payload of an earlier request"


@clause("INV-03")
@pytest.mark.parametrize("absent", [("user_id", "session_id"), ("user_id",), ("session_id",)])
def test_user_and_session_may_be_absent(platform: Platform, absent: tuple[str, ...]) -> None:
    """The entrypoint sees which of both are absent; an earlier request does not fill them in."""
    sent = {name: value for name, value in BOTH.items() if name not in absent}
    received = wire.echo(platform, {"prompt": ""}, BOTH)["headers"]
    assert BOTH.items() <= received.items(), f"the headers arrive {instead(received, BOTH)}"

    answer = wire.invoke(platform, {"prompt": ""}, sent)
    if 400 <= answer.status_code < 500:
        pytest.skip(
            f"not observable: HTTP {answer.status_code} without {' and '.join(absent)} "
            "(U-INVOKE-HEADERS)"
        )

    received = wire.echoed(answer)["headers"]
    expected = {**dict.fromkeys(BOTH), **sent}
    actual = {name: received.get(name) for name in BOTH}
    assert expected == actual, f"without {listed(absent)}, {instead(actual, expected)}"


@clause("INV-04")
@for_each(text=STRINGS)
def test_a_returned_string_is_json(platform: Platform, text: str) -> None:
    """A returned string arrives inside JSON, with any characters, even if it looks like JSON."""
    for string in (text, json.dumps(text)):
        returned = wire.returned(wire.invoke(platform, {"do": "say", "prompt": string}))
        assert string == returned, f"the returned string arrives as {instead(returned, string)}"


@clause("INV-04")
def test_a_returned_string_is_json_whatever_is_accepted(platform: Platform) -> None:
    """The answer to a client that accepts anything does not depend on what it prefers."""
    payload = {"do": "say", "prompt": inputs.RICH}
    for accepted in wire.ACCEPTED:
        answer = wire.invoke(platform, payload, {**wire.CALLER, "Accept": accepted})
        assert inputs.RICH == wire.returned(answer), f"another string with Accept: {accepted}"
    answer = wire.send_without_accept(platform, wire.invocation(platform, payload))
    assert inputs.RICH == wire.returned(answer), "another string without Accept"


@clause("INV-07")
@for_each(payload=Input(st.sampled_from(EXCEPTIONS), EXCEPTIONS), prompt=inputs.words())
def test_an_exception_does_not_take_the_application_down(
    platform: Platform, payload: dict[str, Any], prompt: str
) -> None:
    """Each exception returns an error; the session, the other sessions and the probes keep working."""
    mark = f"mark-{uuid.uuid4().hex}"
    failed = wire.invoke(platform, {**payload, "prompt": mark} if "prompt" in payload else payload)

    if event_stream.is_stream(failed):
        *strings, last = wire.data_of(failed)
        chunks, expected = wire.chunks(strings, payload["chunks"]), payload["chunks"]
        assert expected == chunks, f"before the failure, {instead(chunks, expected)}"
        assert wire.stream_error(last) is not None, f"the failure is not an error: {short(last)}"
    else:
        is_error = failed.status_code >= 400 or wire.error_in(failed)
        assert is_error, f"an exception is answered {failed.status_code}: {short(failed.text)}"
    assert _marks(failed.text) <= {mark}, "the answer has the error of another request"
    try:
        after = wire.invoke(platform, {"do": "say", "prompt": prompt})
    except UnreachableError as error:
        raise AssertionError("The exception stopped the application.") from error
    returned = wire.returned(after)
    assert prompt == returned, f"after an exception, /invoke answers {instead(returned, prompt)}"
    for probe in ("/ping", "/readiness"):
        wire.probe(platform, probe)


@clause("INV-08")
def test_a_body_that_is_no_json_is_refused(platform: Platform) -> None:
    """Each malformed body gets a 4xx status and an error message."""
    headers = {"Content-Type": "application/json", **wire.CALLER}
    answers = {
        body: platform.request("POST", "/invoke", headers=headers, content=body)
        for body in BROKEN_BODIES
    }

    statuses = {body: answer.status_code for body, answer in answers.items()}
    wrong = [f"{it!r} ({status})" for it, status in statuses.items() if not 400 <= status < 500]
    assert [] == wrong, f"not refused with 4xx: {listed(wrong)}"
    silent = [body for body, answer in answers.items() if answer.text.strip() in NO_ERRORS]
    assert [] == silent, f"refused without an error message: {listed(silent)}"


@clause("INV-09", reference_app=True, writes=True)
def test_the_session_header_selects_the_sandbox(platform: Platform, leftovers: Leftovers) -> None:
    """run_code sees the state of its own session only, even after an error.

    The ids are long, and differ only in their ends, case, a sign or a zero.
    """
    long, number = uuid.uuid4().hex, uuid.uuid4().int % 10**12 + 10**12
    ids = [f"{long}-a", f"{long}_a", f"{long}-A", f"{long}-ab", f"{number}", f"0{number}"]
    for part in (long, str(number)):
        leftovers.sandbox(part)

    for id_ in ids:
        before = _text(_in_sandbox(platform, id_, "print(globals().get('kept'))"))
        assert "None\n" == before, f"a new session has a variable of another: {before!r}"
        _in_sandbox(platform, id_, f"kept = {id_!r}")
    reads = [functools.partial(_in_sandbox, platform, id_, "print(kept)") for id_ in ids]
    for results in ([read() for read in reads], at_once(reads)):
        texts, expected = [_text(outputs) for outputs in results], [f"{id_}\n" for id_ in ids]
        assert expected == texts, f"a session reads a variable as {instead(texts, expected)}"
    errors = [out.get("ename") for out in _in_sandbox(platform, ids[0], "lost")]
    assert ["NameError"] == errors, f"an unknown name gives {listed(errors)} and no NameError"
    after = _text(_in_sandbox(platform, ids[0], "print(kept)"))
    assert f"{ids[0]}\n" == after, f"after an error, a session reads {short(after)}"


def _marks(text: str) -> set[str]:
    """Return the marks of requests in a text."""
    return set(re.findall("mark-[0-9a-f]{32}", text))


def _in_sandbox(platform: Platform, session_id: str, code: str) -> list[dict[str, Any]]:
    """Return the outputs of code that the application runs in a session."""
    payload = {"do": "run_code", "prompt": code}
    answer = wire.invoke(platform, payload, {**wire.CALLER, "session_id": session_id})
    _, data = wire.inner({"Result": wire.returned(answer)})
    outputs: list[dict[str, Any]] = data.get("outputs", [])
    return outputs


def _text(outputs: list[dict[str, Any]]) -> str:
    """Return what code printed, in one or several outputs."""
    return "".join(output.get("text") or "" for output in outputs)


RICH = [
    *(inputs.RICH, "", " ", "\n", "a", "a", " a", "a ", "\na\n", inputs.RICH),
    *(": comment", "data: x", "event: error", "id: 1", '{"a":  [1, {"b": null}]}', "null"),
    *("0123456789" * 500, *inputs.many("number {}"), "the end"),
]
LARGE = [f"{number}" + "0123456789abcdef" * 4096 for number in range(4)]
CHUNKS = Input(
    st.lists(inputs.texts(long=2000).strategy, min_size=1, max_size=6).map(
        lambda texts: ["first", *texts]  # so that some do not look like JSON
    ),
    (RICH, LARGE, ["alone"], ["first", ""]),
)


@clause("INV-05")
@for_each(chunks=CHUNKS)
def test_each_string_is_an_event(platform: Platform, chunks: list[str]) -> None:
    """In each stream, all strings arrive in order, unchanged, once each."""
    for _ in range(2):
        events = [event.data for event in wire.stream(platform, chunks)]

        strings = wire.chunks(events, chunks)
        assert chunks == strings, f"the stream has {instead(strings, chunks)}"


@clause("INV-05")
def test_strings_are_events_whatever_is_accepted(platform: Platform) -> None:
    """The events of a client that accepts anything do not depend on what it prefers."""
    chunks = ["one", "two"]
    payload = {"do": "stream", "chunks": chunks, "prompt": ""}
    for accepted in wire.ACCEPTED:
        answer = wire.invoke(platform, payload, {**wire.CALLER, "Accept": accepted})
        assert chunks == wire.chunks(wire.data_of(answer), chunks), f"with Accept: {accepted}"
    answer = wire.send_without_accept(platform, wire.invocation(platform, payload))
    assert chunks == wire.chunks(wire.data_of(answer), chunks), "without Accept"


@clause("INV-05")
def test_strings_arrive_as_they_are_produced(platform: Platform) -> None:
    """Each string arrives before the next one may be produced."""
    chunks, gate = [f"chunk {number}" for number in range(12)], uuid.uuid4().hex
    arrived = []

    with closing(wire.stream(platform, chunks, gate=gate)) as events:
        for event in events:
            arrived.append(event.data)
            wire.invoke(platform, {"do": "release", "gate": gate, "prompt": ""})

    strings = wire.chunks(arrived, chunks)
    assert chunks == strings, f"the stream has {instead(strings, chunks)}"


@clause("INV-06")
@for_each(message=inputs.texts(long=2000), chunks=CHUNKS)
def test_a_failure_in_a_stream_is_an_event(
    platform: Platform, message: str, chunks: list[str]
) -> None:
    """The strings before the failure arrive as usual; the last event is an object with ``error``.

    If there are none, the whole response may be an error instead.
    """
    mark = f"mark-{uuid.uuid4().hex}"
    for some in (chunks, chunks[:1], [], chunks):
        order = {"do": "fail_late", "chunks": some, "prompt": message and f"{message}{mark}"}
        answer = wire.invoke(platform, order)
        if not some and not event_stream.is_stream(answer):
            assert answer.is_error, f"a failure is answered {answer.status_code}"
            continue

        *before, last = wire.data_of(answer)

        without = [event.data for event in wire.stream(platform, some)] if some else []
        expected, strings = wire.chunks(without, some), wire.chunks(before, some)
        assert expected == strings, f"before the failure, {instead(strings, expected)}"
        error = wire.stream_error(last)
        assert error is not None, f"the last event is no object with an error: {short(last)}"
        assert _marks(error) <= {mark}, "the stream has the error of another one"
