"""Mutants of the streams of /run_sse in API-server mode: lines, JSON and texts."""

from __future__ import annotations

import json

import pytest

from tests.mutants import Mutant, lossy, wire
from tests.mutants.api_changes import (
    RUN_SSE,
    OfText,
    by_turn,
    with_texts,
)
from tests.mutants.wire import DROP, Request

IS_LINE = "POST /run_sse: SSE stream, each `data:` line holds one event as JSON (4.2)"


def _streamed_text(change: OfText) -> wire.Change:
    return wire.events(RUN_SSE, with_texts(change))


def _every_third_run_fails(patch: pytest.MonkeyPatch) -> None:
    """Lose the events of every third stream."""
    count = 0
    lost: set[int] = set()

    def begins(request: Request) -> None:
        nonlocal count
        count += 1
        if count % 3 == 0:
            lost.add(id(request))

    wire.install(
        patch,
        wire.requested(RUN_SSE, begins),
        wire.events(RUN_SSE, lambda event, request: DROP if id(request) in lost else event),
    )


def _raw_newlines(raw: bytes) -> bytes:
    return raw.replace(b"\\n", b"\n")


def _python(raw: bytes) -> bytes:
    """Write an event as Python shows it, with single quotes and None."""
    return f"data: {json.loads(raw.removeprefix(b'data:'))}\n\n".encode()


def _as_one_list(raw: bytes) -> bytes:
    return b"data: [" + raw.removeprefix(b"data:").strip() + b"]\n\n"


def _as_json_text(raw: bytes) -> bytes:
    return b"data: " + json.dumps(raw.removeprefix(b"data:").strip().decode()).encode() + b"\n\n"


def _with_done(raw: bytes) -> list[bytes]:
    final = b'"partial"' not in raw and b'"text"' in raw
    return [raw, b"data: [DONE]\n\n"] if final else [raw]


def _cut(raw: bytes) -> bytes:
    """Cut an event that is longer than 1,024 bytes."""
    return raw if len(raw) <= 1024 else raw[:1024] + b"\n\n"


def _lying_type(patch: pytest.MonkeyPatch) -> None:
    """Say that the stream is JSON."""
    from agentdouble.api_server import run_responses

    patch.setattr(run_responses, "_STREAM", [(b"content-type", b"application/json")])


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "lose_white_space_at_the_ends_of_streamed_texts",
        "API-08",
        IS_LINE,
        _streamed_text(str.strip),
    ),
    Mutant(
        "leave_out_the_word_data",
        "API-08",
        IS_LINE,
        wire.raw_events(RUN_SSE, lambda raw: raw.removeprefix(b"data: ")),
    ),
    Mutant("write_python_for_json", "API-08", IS_LINE, wire.raw_events(RUN_SSE, _python)),
    Mutant("put_each_event_into_a_list", "API-08", IS_LINE, wire.raw_events(RUN_SSE, _as_one_list)),
    Mutant("write_json_as_a_text", "API-08", IS_LINE, wire.raw_events(RUN_SSE, _as_json_text)),
    Mutant("end_with_done", "API-08", IS_LINE, wire.raw_events(RUN_SSE, _with_done)),
    Mutant("cut_lines_at_1024_bytes", "API-08", IS_LINE, wire.raw_events(RUN_SSE, _cut)),
    Mutant("break_lines_at_newlines", "API-08", IS_LINE, wire.raw_events(RUN_SSE, _raw_newlines)),
    Mutant("say_that_the_stream_is_json", "API-08", IS_LINE, _lying_type),
    Mutant("stream_nothing", "API-08", IS_LINE, wire.events(RUN_SSE, lambda _event: DROP)),
    Mutant("stream_nothing_every_third_time", "API-08", IS_LINE, _every_third_run_fails),
    Mutant("misread_streamed_texts_as_latin_1", "API-08", IS_LINE, _streamed_text(lossy.misread)),
    Mutant(
        "cut_streamed_texts_at_4000",
        "API-08",
        IS_LINE,
        _streamed_text(lossy.cut(4000)),
    ),
    Mutant(
        "join_the_lines_of_streamed_texts",
        "API-08",
        IS_LINE,
        _streamed_text(lambda text: text.replace("\n", " ")),
    ),
    Mutant(
        "lose_what_is_beyond_ascii_in_streams", "API-08", IS_LINE, _streamed_text(lossy.to_ascii)
    ),
    Mutant(
        "stream_only_the_first_event",
        "API-08",
        IS_LINE,
        by_turn(lambda turn, event: DROP if turn.seen else event),
    ),
    Mutant(
        "stream_every_event_twice",
        "API-08",
        IS_LINE,
        wire.events(RUN_SSE, lambda event: [event, event]),
    ),
)
