"""Mutants of the events of runs in API-server mode: contents, tool calls and final replies."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.mutants import Mutant, lossy, wire
from tests.mutants.api_changes import (
    RUN_SSE,
    Json,
    OfEvent,
    Turn,
    by_turn,
    dropped,
    each_of_history,
    each_of_run,
    each_of_runs,
    has,
    increments,
    is_increment,
    is_reply,
    of_run,
    text_of,
    with_content,
    with_parts,
    with_texts,
)
from tests.mutants.wire import DROP

CONTENT = "Has `content`: an object with `role` and `parts`, each with `text`: string (2.2, 2.4)"
ROLE = "role (string; `user` for user messages, `model` in replies) (2.2)"
KINDS = "Kinds carried: model increments, tool calls, final replies (6.1)"


# ---- contents


def _without(key: str) -> OfEvent:
    return with_content(lossy.without(key))


def _with_role(role: Any) -> Callable[[Json], Json]:
    """Return a change of the role of a content of the model."""

    def change(content: Json) -> Json:
        return {**content, "role": role} if content.get("role") == "model" else content

    return change


def _renamed(part: Json) -> Json:
    if "text" not in part:
        return part
    return {("value" if name == "text" else name): value for name, value in part.items()}


# ---- tool calls and final replies


def _changed_call(change: Callable[[Json], Any]) -> OfEvent:
    def part(one: Json) -> Json:
        return change(one) if "functionCall" in one else one

    return with_parts(lambda parts: [part(one) for one in parts])


def _is_call(event: Json) -> bool:
    return has(event, "functionCall")


def _last_reply_lost(events: list[Json]) -> list[Json]:
    return events[:-1] if events and is_reply(events[-1]) and len(events) > 1 else events


def _after_a_tool(turn: Turn, event: Json) -> Any:
    """Lose the reply that follows a tool call."""
    return DROP if is_reply(event) and any(map(_is_call, turn.seen)) else event


def _reply_of_last_increment(turn: Turn, event: Json) -> Any:
    """Tell as the final reply what the last increment said."""
    last = turn.seen[-1] if turn.seen else {}
    if not is_reply(event) or not is_increment(last):
        return event
    return with_texts(lambda _text: text_of(last))(event)


def _calls_last(events: list[Json]) -> list[Json]:
    return sorted(events, key=_is_call)


MUTANTS: tuple[Mutant, ...] = (
    # ---- API-10
    Mutant(
        "send_events_without_content",
        "API-10",
        CONTENT,
        each_of_runs(lossy.without("content")),
    ),
    Mutant(
        "send_text_for_content",
        "API-10",
        CONTENT,
        each_of_runs(
            lambda event: {**event, "content": text_of(event)} if "content" in event else event
        ),
    ),
    Mutant("send_no_role", "API-10", CONTENT, each_of_runs(_without("role"))),
    Mutant("send_no_parts", "API-10", CONTENT, each_of_runs(_without("parts"))),
    Mutant(
        "call_the_model_assistant",
        "API-10",
        ROLE,
        each_of_runs(with_content(_with_role("assistant"))),
    ),
    Mutant("call_the_model_user", "API-10", ROLE, each_of_runs(with_content(_with_role("user")))),
    Mutant(
        "call_the_model_assistant_in_streams",
        "API-10",
        ROLE,
        wire.events(RUN_SSE, with_content(_with_role("assistant"))),
    ),
    Mutant(
        "call_the_model_assistant_in_run",
        "API-10",
        ROLE,
        each_of_run(with_content(_with_role("assistant"))),
    ),
    Mutant(
        "send_increments_without_a_role",
        "API-10",
        ROLE,
        increments(_without("role")),
    ),
    Mutant(
        "send_one_part_for_a_list",
        "API-10",
        CONTENT,
        each_of_runs(with_parts(lambda parts: parts[0] if parts else parts)),
    ),
    Mutant(
        "send_texts_for_parts",
        "API-10",
        CONTENT,
        each_of_runs(with_parts(lambda parts: [part.get("text", part) for part in parts])),
    ),
    Mutant(
        "call_the_text_value",
        "API-10",
        CONTENT,
        each_of_runs(with_parts(lambda parts: [_renamed(part) for part in parts])),
    ),
    Mutant("send_digits_as_numbers", "API-10", CONTENT, each_of_runs(with_texts(lossy.to_number))),
    Mutant(
        "send_a_list_of_lines_for_a_text",
        "API-10",
        CONTENT,
        each_of_runs(with_texts(lambda text: text.split("\n"))),  # type: ignore[arg-type, return-value]
    ),
    Mutant(
        "call_the_model_assistant_in_the_history",
        "API-10",
        ROLE,
        each_of_history(with_content(_with_role("assistant"))),
        also=("API-05",),
    ),
    # ---- API-11
    Mutant("answer_no_tool_calls", "API-11", KINDS, each_of_run(dropped(_is_call))),
    Mutant("stream_no_tool_calls", "API-11", KINDS, wire.events(RUN_SSE, dropped(_is_call))),
    Mutant(
        "tell_tool_calls_as_text",
        "API-11",
        KINDS,
        each_of_runs(_changed_call(lambda part: {"text": json.dumps(part["functionCall"])})),
    ),
    Mutant(
        "tell_tool_calls_without_a_name",
        "API-11",
        KINDS,
        each_of_runs(
            _changed_call(lambda part: {"functionCall": {**part["functionCall"], "name": ""}})
        ),
    ),
    Mutant(
        "tell_tool_calls_without_arguments",
        "API-11",
        KINDS,
        each_of_runs(
            _changed_call(lambda part: {"functionCall": {**part["functionCall"], "args": {}}})
        ),
    ),
    Mutant(
        "tell_booleans_in_arguments_as_numbers",
        "API-11",
        KINDS,
        each_of_runs(_changed_call(lossy.booleans_as_numbers)),
    ),
    Mutant("answer_no_final_reply", "API-11", KINDS, of_run(_last_reply_lost)),
    Mutant("stream_no_final_reply", "API-11", KINDS, wire.events(RUN_SSE, dropped(is_reply))),
    Mutant("stream_no_reply_after_a_tool", "API-11", KINDS, by_turn(_after_a_tool)),
    Mutant("stream_no_model_increments", "API-11", KINDS, increments(lambda _event: DROP)),
    Mutant("answer_tool_calls_after_the_reply", "API-11", KINDS, of_run(_calls_last)),
    Mutant("reply_with_the_last_increment", "API-11", KINDS, by_turn(_reply_of_last_increment)),
    Mutant(
        "send_the_final_reply_twice",
        "API-11",
        KINDS,
        wire.events(RUN_SSE, lambda event: [event, event] if is_reply(event) else event),
    ),
)
