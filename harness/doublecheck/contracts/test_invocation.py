"""Checks of POST /invoke (INV)."""

from __future__ import annotations

import uuid
from contextlib import closing
from typing import Any

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import inputs, wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.examples import for_each
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.errors import UnreachableError

BROKEN_BODIES = (b"", b"{", b"hello", b"\xff\xfe")


@clause("INV-01")
@for_each(payload=inputs.payloads())
def test_the_payload_reaches_the_entrypoint(platform: Platform, payload: dict[str, Any]) -> None:
    """The entrypoint sees the prompt and every other field as they were sent."""
    assert payload == wire.echo(platform, payload)["payload"]


@clause("INV-02")
def test_the_headers_reach_the_entrypoint(platform: Platform) -> None:
    """The entrypoint sees the three named headers and a custom one."""
    sent = {"user_id": "u1", "session_id": "s1", "request_id": "r1", "x-custom": "c1"}

    seen = wire.echo(platform, {"prompt": ""}, sent)["headers"]

    assert sent == {name: seen.get(name) for name in sent}


@clause("INV-03")
def test_user_and_session_may_be_absent(platform: Platform) -> None:
    """Without them the entrypoint is called, and sees that they are absent."""
    seen = wire.echo(platform, {"prompt": ""}, headers={})["headers"]

    assert [None, None] == [seen.get("user_id"), seen.get("session_id")]


@clause("INV-04")
@for_each(said=inputs.texts(carriage_returns=True))
def test_a_returned_string_is_json(platform: Platform, said: str) -> None:
    """A returned string arrives inside JSON, with any characters."""
    assert said == wire.returned(wire.invoke(platform, {"do": "say", "prompt": said}))


@clause("INV-05")
def test_chunks_arrive_as_they_are_produced(platform: Platform) -> None:
    """Each string is an event, and is read before the next one may be produced."""
    chunks, gate = ["one", "two", "three"], uuid.uuid4().hex
    release = {"do": "release", "gate": gate, "prompt": ""}
    arrived = []

    with closing(
        platform.stream("", do="stream", chunks=chunks, gate=gate, headers=wire.CALLER)
    ) as events:
        for event in events:
            arrived.append(wire.chunk(event.data))
            wire.invoke(platform, release)

    assert chunks == arrived


@clause("INV-06")
def test_a_failure_in_a_stream_is_an_event(platform: Platform) -> None:
    """The chunks before the failure arrive, then an object with ``error``."""
    events = list(platform.stream("it broke", do="fail_late", chunks=["one"], headers=wire.CALLER))

    first, last = events[0], events[-1]
    assert ["one", 2] == [wire.chunk(first.data), len(events)]
    assert last.error is not None, f"{last.data!r} is no object with a string 'error'"


@clause("INV-07")
def test_an_exception_does_not_take_the_application_down(platform: Platform) -> None:
    """An entrypoint that raises is answered with an error; the next one is answered too."""
    failed = wire.invoke(platform, {"do": "fail", "prompt": "it broke"})
    try:
        after = wire.invoke(platform, {"do": "say", "prompt": "still here"})
    except UnreachableError as error:
        raise AssertionError("The exception took the application down.") from error

    assert failed.status_code >= 400, failed.text
    assert "still here" == wire.returned(after)


@clause("INV-08")
def test_a_body_that_is_no_json_is_refused(platform: Platform) -> None:
    """Each broken body is answered with a 4xx status and an error that is not empty."""
    answers = {body: _send_raw(platform, body) for body in BROKEN_BODIES}

    statuses = {body: answer.status_code for body, answer in answers.items()}
    assert {} == {body: status for body, status in statuses.items() if not 400 <= status < 500}
    assert [] == [body for body, answer in answers.items() if not answer.text.strip()]


@clause("INV-09", reference_app=True, writes=True)
def test_the_session_header_selects_the_sandbox(platform: Platform, leftovers: Leftovers) -> None:
    """run_code in one session finds its earlier state; in another session it does not."""
    one, other = ({"user_id": "doublecheck", "session_id": uuid.uuid4().hex} for _ in range(2))
    for session in (one, other):
        leftovers.sandbox(session["session_id"])

    _run_in_app(platform, one, "kept = 41")
    found = _run_in_app(platform, one, "print(kept + 1)")
    missed = _run_in_app(platform, other, "print(kept + 1)")

    assert ["42\n"] == [output.get("text") for output in found]
    assert ["NameError"] == [output.get("ename") for output in missed]


def _send_raw(platform: Platform, body: bytes) -> Any:
    return platform.request(
        "POST", "/invoke", headers={"Content-Type": "application/json"}, content=body
    )


def _run_in_app(platform: Platform, session: dict[str, str], code: str) -> list[Any]:
    answer = wire.invoke(platform, {"do": "run_code", "prompt": code}, session)
    _, data = wire.inner({"Result": wire.returned(answer)})
    outputs: list[Any] = data.get("outputs", [])
    return outputs
