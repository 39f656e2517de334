"""Checks of POST /invoke whose entrypoint yields strings: the streams and their failures (INV)."""

from __future__ import annotations

import uuid
from contextlib import closing

from hypothesis import strategies as st

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import inputs, wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.examples import Input, for_each
from doublecheck.errors import RefusedError

RICH = [
    *(inputs.RICH, "", " ", "\n", "a", "a", " a", "a ", "\na\n", inputs.RICH),
    *(": comment", "data: x", "event: error", "id: 1", '{"a":  [1, {"b": null}]}', "null"),
    *("0123456789" * 500, *(f"number {number}" for number in range(20)), "the end"),
]
CHUNKS = Input(
    st.lists(inputs.texts(long=2000).strategy, min_size=1, max_size=6).map(
        lambda texts: ["first", *texts]  # so that not all of them look like JSON
    ),
    (RICH, ["alone"], ["first", ""]),
)


@clause("INV-05")
@for_each(chunks=CHUNKS)
def test_each_string_is_an_event(platform: Platform, chunks: list[str]) -> None:
    """All strings arrive, in their order, each once and as it was yielded, in each stream."""
    for _ in range(2):
        events = [event.data for event in wire.stream(platform, chunks)]

        assert chunks == wire.chunks(events, chunks)


@clause("INV-05")
def test_strings_arrive_as_they_are_produced(platform: Platform) -> None:
    """Each string is read before the next one may be produced."""
    chunks, gate = ["one", "two", "three"], uuid.uuid4().hex
    arrived = []

    with closing(wire.stream(platform, chunks, gate=gate)) as events:
        for event in events:
            arrived.append(wire.chunk(event.data))
            wire.release(platform, gate)

    assert chunks == arrived


@clause("INV-05")
def test_two_streams_go_on_side_by_side(platform: Platform) -> None:
    """Neither waits for the other's end, nor has its strings."""
    gates = [uuid.uuid4().hex for _ in range(2)]
    ones, others = ([f"{name} {n}" for n in range(3)] for name in ("one", "other"))

    with (
        closing(wire.stream(platform, ones, gate=gates[0])) as first,
        closing(wire.stream(platform, others, gate=gates[1])) as second,
    ):
        for pair in zip(ones, others, strict=True):
            assert [*pair] == [wire.chunk(next(one).data) for one in (first, second)]
            for gate in gates:
                wire.release(platform, gate)
        assert [None, None] == [next(one, None) for one in (first, second)]


@clause("INV-06")
@for_each(message=inputs.texts(empty=False, long=2000), chunks=CHUNKS)
def test_a_failure_in_a_stream_is_an_event(
    platform: Platform, message: str, chunks: list[str]
) -> None:
    """The strings before it arrive as they do without it, then an object with ``error`` is the end."""
    for some in (chunks, chunks[:1]):
        without = [event.data for event in wire.stream(platform, some)]

        *before, last = _failing(platform, message, some)

        assert wire.chunks(without, some) == wire.chunks(before, some)
        assert wire.stream_error(last), f"{last!r} is no object with a string 'error'"


@clause("INV-06")
def test_a_failure_before_the_first_string_is_told(platform: Platform) -> None:
    """It is an event, too, or the answer is an error as a whole."""
    for _ in range(2):
        try:
            events = _failing(platform, "it broke", [])
        except RefusedError:
            continue

        assert [True] == [wire.stream_error(data) is not None for data in events], events


def _failing(platform: Platform, message: str, chunks: list[str]) -> list[str]:
    """Return the events of a stream that fails after its strings."""
    stream = platform.stream(message, do="fail_late", chunks=chunks, headers=wire.CALLER)
    return [event.data for event in stream]
