"""Mutants of the increments of texts that /run_sse streams in API-server mode."""

from __future__ import annotations

from typing import Any

import pytest

from tests.mutants import Mutant, wire
from tests.mutants.api_changes import (
    RUN_SSE,
    Json,
    Turn,
    by_turn,
    dropped,
    has,
    held_back,
    increments,
    is_increment,
    text_of,
    with_texts,
)
from tests.mutants.wire import DROP

INCREMENTS = "With streaming true, text arrives as small increments across events (6.2)"
DEFAULT = "streaming: incremental streaming at model level; default false (2.2)"


def _held_back_but_the_first(turn: Turn, event: Json) -> Any:
    return event if not turn.seen else held_back(turn, event)


def _joined(turn: Turn, event: Json) -> Any:
    """Make one increment of all."""
    told = held_back(turn, event)
    if told is DROP or len(told) < 2:
        return told
    whole = "".join(map(text_of, told[:-1]))
    return [with_texts(lambda _text: whole)(told[0]), told[-1]]


def _reversed(turn: Turn, event: Json) -> Any:
    told = held_back(turn, event)
    return told if told is DROP else [*told[:-1][::-1], told[-1]]


def _without_the_last_increment(turn: Turn, event: Json) -> Any:
    """Tell each increment when the next one comes; the last one never."""
    held, turn.held = turn.held, [event] if is_increment(event) else []
    return held if turn.held else event


def _so_far(turn: Turn, event: Json) -> Any:
    """Tell with each increment the whole text so far."""
    if not is_increment(event):
        turn.text = ""
        return event
    turn.text += text_of(event)
    return with_texts(lambda _text: turn.text)(event)


def _until_a_tool_call(turn: Turn, event: Json) -> Any:
    called = any(has(one, "functionCall") for one in turn.seen)
    return DROP if called and is_increment(event) else event


def _only_the_first_streams(patch: pytest.MonkeyPatch) -> None:
    """Stream a session's first run in increments, and no other."""
    seen: set[str] = set()

    def body(given: Json) -> Json:
        session = str(given.get("sessionId"))
        if session in seen:
            return {**given, "streaming": False}
        seen.add(session)
        return given

    wire.requests(RUN_SSE, body)(patch)


def _streams_anyway(body: Json) -> Json:
    return {**body, "streaming": True} if body.get("streaming") is False else body


MUTANTS: tuple[Mutant, ...] = (
    Mutant("send_no_increments", "API-09", INCREMENTS, increments(lambda _event: DROP)),
    Mutant("hold_increments_back", "API-09", INCREMENTS, by_turn(held_back)),
    Mutant(
        "hold_all_increments_but_the_first_back",
        "API-09",
        INCREMENTS,
        by_turn(_held_back_but_the_first),
    ),
    Mutant("join_all_increments", "API-09", INCREMENTS, by_turn(_joined)),
    Mutant("send_increments_backwards", "API-09", INCREMENTS, by_turn(_reversed)),
    Mutant("lose_the_last_increment", "API-09", INCREMENTS, by_turn(_without_the_last_increment)),
    Mutant(
        "lose_the_first_increment",
        "API-09",
        INCREMENTS,
        by_turn(lambda turn, event: event if turn.seen or not is_increment(event) else DROP),
    ),
    Mutant("send_the_text_so_far", "API-09", INCREMENTS, by_turn(_so_far)),
    Mutant(
        "send_every_increment_twice",
        "API-09",
        INCREMENTS,
        increments(lambda event: [event, event]),
    ),
    Mutant("strip_increments", "API-09", INCREMENTS, increments(with_texts(str.strip))),
    Mutant(
        "lose_increments_of_white_space",
        "API-09",
        INCREMENTS,
        increments(dropped(lambda event: not text_of(event).strip())),
    ),
    Mutant("stop_increments_at_a_tool_call", "API-09", INCREMENTS, by_turn(_until_a_tool_call)),
    Mutant("stream_only_the_first_run", "API-09", INCREMENTS, _only_the_first_streams),
    Mutant(
        "stream_by_default",
        "API-09",
        DEFAULT,
        wire.requests(RUN_SSE, lambda body: {"streaming": True, **body}),
    ),
    Mutant("stream_where_it_is_false", "API-09", DEFAULT, wire.requests(RUN_SSE, _streams_anyway)),
)
