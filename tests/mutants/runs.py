"""Mutants of the runs of API-server mode: /run, /run_sse and the history that an agent sees."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agentdouble.agents.events import Event, Part
from agentdouble.api_server.agent_run import SessionBackend
from agentdouble.api_server.runs import Run
from tests.mutants import Mutant, lossy, wire
from tests.mutants.api_changes import (
    CREATE,
    CREATE_WITH_ID,
    READ,
    RUN,
    RUN_SSE,
    Json,
    OfEvent,
    OfText,
    Patching,
    all_of,
    each_of_history,
    each_of_run,
    each_of_runs,
    has,
    is_increment,
    is_reply,
    of_run,
    segments,
    text_of,
    with_content,
    with_parts,
    with_texts,
)
from tests.mutants.wire import DROP, Answer, Request

ALL_EVENTS = "POST /run: all events as one list (4.2)"
MESSAGE = "newMessage: this turn's user message; parts: array of objects, each with text (2.2)"
IS_LINE = "POST /run_sse: SSE stream, each `data:` line holds one event as JSON (4.2)"
INCREMENTS = "With streaming true, text arrives as small increments across events (6.2)"
DEFAULT = "streaming: incremental streaming at model level; default false (2.2)"
CONTENT = "Has `content`: an object with `role` and `parts`, each with `text`: string (2.2, 2.4)"
ROLE = "role (string; `user` for user messages, `model` in replies) (2.2)"
KINDS = "Kinds carried: model increments, tool calls, final replies (6.1)"
REQUIRED = "appName, userId, sessionId, newMessage: required (2.2)"
HISTORY = "the session including its history of events (2.3)"


# ---- the whole turn


def _text(change: OfText) -> wire.Change:
    """Change the texts that /run answers."""
    return each_of_run(with_texts(change))


def _streamed_text(change: OfText) -> wire.Change:
    return wire.events(RUN_SSE, with_texts(change))


def _of_later_turns(change: Callable[[list[Json], list[Json]], Any]) -> Patching:
    """Change the events of a session's later turns, together with those of its earlier ones."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        before: dict[str, list[Json]] = {}

        def answer(found: Any, request: Request) -> Any:
            if not isinstance(found, list):
                return found
            earlier = before.setdefault(request.json["sessionId"], [])
            changed = change(earlier, found) if earlier else found
            earlier.extend(found)
            return changed

        wire.answers(RUN, answer)(patch)

    return patching


def _lines(answer: Answer, _request: Request) -> None:
    """Answer a JSON object a line for a list."""
    found = json.loads(answer.body)
    if isinstance(found, list):
        answer.body = b"".join(json.dumps(event).encode() + b"\n" for event in found)
        answer.headers["content-type"] = "application/x-ndjson"


def _message(change: Callable[[Json], Json]) -> Patching:
    """Change the message before the agent has it."""

    def body(given: Json) -> Json:
        message = given.get("newMessage")
        if not isinstance(message, dict) or not message.get("parts"):
            return given
        return {**given, "newMessage": change(message)}

    return all_of(wire.requests(RUN, body), wire.requests(RUN_SSE, body))


def _said(change: OfText) -> Patching:
    """Change the texts of the message before the agent has them."""
    content = with_texts(change)
    return _message(lambda message: content({"content": message})["content"])


def _composed(text: str) -> str:
    """Return a text in which accents are one with their letters."""
    return unicodedata.normalize("NFC", text)


# ---- the stream


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


class _Turn:
    """What has come of a stream so far."""

    def __init__(self) -> None:
        self.held: list[Json] = []
        self.text = ""
        self.seen: list[Json] = []


def _by_turn(change: Callable[[_Turn, Json], Any]) -> Patching:
    """Change the events of a stream with what has come of it so far."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        turns: dict[int, tuple[Request, _Turn]] = {}

        def event(one: Json, request: Request) -> Any:
            _request, turn = turns.setdefault(id(request), (request, _Turn()))
            changed = change(turn, one)
            turn.seen.append(one)
            return changed

        wire.events(RUN_SSE, event)(patch)

    return patching


def _held_back(turn: _Turn, event: Json) -> Any:
    """Hold increments back until something else comes."""
    if is_increment(event):
        turn.held.append(event)
        return DROP
    held, turn.held = turn.held, []
    return [*held, event]


def _held_back_but_the_first(turn: _Turn, event: Json) -> Any:
    return event if not turn.seen else _held_back(turn, event)


def _joined(turn: _Turn, event: Json) -> Any:
    """Make one increment of all."""
    told = _held_back(turn, event)
    if told is DROP or len(told) < 2:
        return told
    whole = "".join(map(text_of, told[:-1]))
    return [with_texts(lambda _text: whole)(told[0]), told[-1]]


def _reversed(turn: _Turn, event: Json) -> Any:
    told = _held_back(turn, event)
    return told if told is DROP else [*told[:-1][::-1], told[-1]]


def _without_the_last_increment(turn: _Turn, event: Json) -> Any:
    """Tell each increment when the next one comes; the last one never."""
    held, turn.held = turn.held, [event] if is_increment(event) else []
    return held if turn.held else event


def _so_far(turn: _Turn, event: Json) -> Any:
    """Tell with each increment the whole text so far."""
    if not is_increment(event):
        turn.text = ""
        return event
    turn.text += text_of(event)
    return with_texts(lambda _text: turn.text)(event)


def _until_a_tool_call(turn: _Turn, event: Json) -> Any:
    called = any(has(one, "functionCall") for one in turn.seen)
    return DROP if called and is_increment(event) else event


def _increments(change: Callable[[Json], Any]) -> Patching:
    """Change increments alone."""
    return wire.events(RUN_SSE, lambda event: change(event) if is_increment(event) else event)


def _but_increments(change: Callable[[Json], Any]) -> OfEvent:
    return lambda event: event if is_increment(event) else change(event)


def _dropped(which: Callable[[Json], bool]) -> OfEvent:
    return lambda event: DROP if which(event) else event


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


def _after_a_tool(turn: _Turn, event: Json) -> Any:
    """Lose the reply that follows a tool call."""
    return DROP if is_reply(event) and any(map(_is_call, turn.seen)) else event


def _reply_of_last_increment(turn: _Turn, event: Json) -> Any:
    """Tell as the final reply what the last increment said."""
    last = turn.seen[-1] if turn.seen else {}
    if not is_reply(event) or not is_increment(last):
        return event
    return with_texts(lambda _text: text_of(last))(event)


def _calls_last(events: list[Json]) -> list[Json]:
    return sorted(events, key=_is_call)


# ---- required fields


def _filled(route: str, field: str) -> Patching:
    """Fill in a field that a run lacks, from the session that was created last."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        known: dict[str, Any] = {"newMessage": {"role": "user", "parts": [{"text": "Hello"}]}}

        def note(found: Json, request: Request) -> Json:
            if "id" in found:
                app, user = segments(request)[1], segments(request)[3]
                known.update(appName=app, userId=user, sessionId=found["id"])
            return found

        def body(given: Json) -> Json:
            lacks = given.get(field) is None and field in known
            return {**given, field: known[field]} if lacks else given

        created = [wire.answers(one, note) for one in (CREATE, CREATE_WITH_ID)]
        wire.install(patch, *created, wire.requests(route, body))

    return patching


def _nothing_went_wrong(route: str, body: Any) -> wire.Change:
    """Answer what is refused with 200."""

    def answer(answer: Answer, _request: Request) -> None:
        if answer.status >= 400:
            answer.status = 200
            answer.body = answer.body if body is None else json.dumps(body).encode()

    return wire.answered(route, answer)


def _error(event: Json) -> Any:
    return DROP if "error" in event and "content" not in event else event


# ---- the history that an agent sees


def _history(change: Callable[[tuple[Event, ...]], Any]) -> Patching:
    """Change the history that an agent gets."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        whole = SessionBackend.history

        async def history(self: SessionBackend) -> tuple[Event, ...]:
            return tuple(change(await whole(self)))

        patch.setattr(SessionBackend, "history", history)

    return patching


def _of_users(change: Callable[[list[Event]], list[Event]]) -> Patching:
    """Change the users' messages in the history that an agent gets."""
    return _history(lambda events: change([event for event in events if event.author == "user"]))


def _history_texts(change: OfText) -> Patching:
    def changed(event: Event) -> Event:
        parts = tuple(Part.of_text(change(event.text)) for _part in event.parts[:1])
        return replace(event, parts=parts)

    return _of_users(lambda events: [changed(event) for event in events])


def _not_remembered(streams: bool) -> Patching:
    """Forget a turn of one way of running when the next one begins."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        latest: set[str] = set()
        forgotten: set[str] = set()
        whole, begun = SessionBackend.history, Run.__init__

        def begin(self: Run, *given: Any, **named: Any) -> None:
            begun(self, *given, **named)
            forgotten.update(latest)
            latest.clear()
            if named["streaming"] is streams:
                latest.add(self._invocation_id)

        async def history(self: SessionBackend) -> tuple[Event, ...]:
            return tuple(
                event
                for event in await whole(self)
                if event.more.get("invocationId") not in forgotten
            )

        patch.setattr(Run, "__init__", begin)
        patch.setattr(SessionBackend, "history", history)

    return patching


def _forgotten_once_read(patch: pytest.MonkeyPatch) -> None:
    """Give an agent no history of a session that was read."""
    read: set[str] = set()
    whole = SessionBackend.history

    async def history(self: SessionBackend) -> tuple[Event, ...]:
        events = await whole(self)
        return events[-1:] if self._key.id in read else events

    patch.setattr(SessionBackend, "history", history)
    wire.requested(READ, lambda request: read.add(segments(request)[5]))(patch)


MUTANTS: tuple[Mutant, ...] = (
    # ---- API-07
    Mutant("answer_only_the_last_event", "API-07", ALL_EVENTS, of_run(lambda found: found[-1:])),
    Mutant("answer_only_the_first_event", "API-07", ALL_EVENTS, of_run(lambda found: found[:1])),
    Mutant("answer_the_first_two_events", "API-07", ALL_EVENTS, of_run(lambda found: found[:2])),
    Mutant("answer_no_event", "API-07", ALL_EVENTS, of_run(lambda _found: [])),
    Mutant(
        "answer_one_event_bare",
        "API-07",
        ALL_EVENTS,
        of_run(lambda found: found[0] if len(found) == 1 else found),
    ),
    Mutant("answer_a_list_of_lists", "API-07", ALL_EVENTS, of_run(lambda found: [found])),
    Mutant("answer_lines_for_a_list", "API-07", ALL_EVENTS, wire.answered(RUN, _lines)),
    Mutant("answer_the_last_event_first", "API-07", ALL_EVENTS, of_run(lambda found: found[::-1])),
    Mutant(
        "answer_the_last_event_twice",
        "API-07",
        ALL_EVENTS,
        of_run(lambda found: [*found, *found[-1:]]),
    ),
    Mutant(
        "answer_earlier_turns_again",
        "API-07",
        "POST /run returns all events of the turn as one list (4.2)",
        _of_later_turns(lambda earlier, found: [*earlier, *found]),
    ),
    Mutant(
        "answer_later_turns_with_nothing",
        "API-07",
        ALL_EVENTS,
        _of_later_turns(lambda _earlier, _found: []),
    ),
    Mutant(
        "answer_later_turns_with_the_first",
        "API-07",
        ALL_EVENTS,
        _of_later_turns(lambda earlier, _found: earlier),
    ),
    Mutant("strip_the_texts_of_run", "API-07", CONTENT, _text(str.strip)),
    Mutant("cut_the_texts_of_run_at_2000", "API-07", CONTENT, _text(lossy.cut(2000))),
    Mutant("cut_the_texts_of_run_at_64_kib", "API-07", CONTENT, _text(lossy.cut(65536))),
    Mutant("lose_emoji_in_run", "API-07", CONTENT, _text(lossy.without_astral)),
    Mutant(
        "turn_crlf_into_newlines_in_run",
        "API-07",
        CONTENT,
        _text(lambda text: text.replace("\r\n", "\n")),
    ),
    Mutant("escape_html_in_run", "API-07", CONTENT, _text(html.escape)),
    Mutant("fail_though_it_has_run", "API-07", ALL_EVENTS, wire.statuses(RUN, 500)),
    Mutant(
        "give_the_agent_the_first_part",
        "API-07",
        MESSAGE,
        _message(lambda message: {**message, "parts": message["parts"][:1]}),
        also=("API-08",),
    ),
    Mutant(
        "give_the_agent_the_last_part",
        "API-07",
        MESSAGE,
        _message(lambda message: {**message, "parts": message["parts"][-1:]}),
        also=("API-08",),
    ),
    Mutant("give_the_agent_one_line", "API-07", MESSAGE, _said(lossy.first_line)),
    Mutant("give_the_agent_normalized_text", "API-07", MESSAGE, _said(_composed)),
    Mutant(
        "give_the_agent_single_spaces",
        "API-07",
        MESSAGE,
        _said(lambda text: re.sub(" +", " ", text)),
    ),
    Mutant("give_the_agent_json_without_spaces", "API-07", MESSAGE, _said(lossy.compact_json)),
    # ---- API-08
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
        _by_turn(lambda turn, event: DROP if turn.seen else event),
    ),
    Mutant(
        "stream_every_event_twice",
        "API-08",
        IS_LINE,
        wire.events(RUN_SSE, lambda event: [event, event]),
    ),
    # ---- API-09
    Mutant("send_no_increments", "API-09", INCREMENTS, _increments(lambda _event: DROP)),
    Mutant("hold_increments_back", "API-09", INCREMENTS, _by_turn(_held_back)),
    Mutant(
        "hold_all_increments_but_the_first_back",
        "API-09",
        INCREMENTS,
        _by_turn(_held_back_but_the_first),
    ),
    Mutant("join_all_increments", "API-09", INCREMENTS, _by_turn(_joined)),
    Mutant("send_increments_backwards", "API-09", INCREMENTS, _by_turn(_reversed)),
    Mutant("lose_the_last_increment", "API-09", INCREMENTS, _by_turn(_without_the_last_increment)),
    Mutant(
        "lose_the_first_increment",
        "API-09",
        INCREMENTS,
        _by_turn(lambda turn, event: event if turn.seen or not is_increment(event) else DROP),
    ),
    Mutant("send_the_text_so_far", "API-09", INCREMENTS, _by_turn(_so_far)),
    Mutant(
        "send_every_increment_twice",
        "API-09",
        INCREMENTS,
        _increments(lambda event: [event, event]),
    ),
    Mutant("strip_increments", "API-09", INCREMENTS, _increments(with_texts(str.strip))),
    Mutant(
        "lose_increments_of_white_space",
        "API-09",
        INCREMENTS,
        _increments(_dropped(lambda event: not text_of(event).strip())),
    ),
    Mutant("stop_increments_at_a_tool_call", "API-09", INCREMENTS, _by_turn(_until_a_tool_call)),
    Mutant("stream_only_the_first_run", "API-09", INCREMENTS, _only_the_first_streams),
    Mutant(
        "stream_by_default",
        "API-09",
        DEFAULT,
        wire.requests(RUN_SSE, lambda body: {"streaming": True, **body}),
    ),
    Mutant("stream_where_it_is_false", "API-09", DEFAULT, wire.requests(RUN_SSE, _streams_anyway)),
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
        _increments(_without("role")),
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
    Mutant("answer_no_tool_calls", "API-11", KINDS, each_of_run(_dropped(_is_call))),
    Mutant("stream_no_tool_calls", "API-11", KINDS, wire.events(RUN_SSE, _dropped(_is_call))),
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
    Mutant("stream_no_final_reply", "API-11", KINDS, wire.events(RUN_SSE, _dropped(is_reply))),
    Mutant("stream_no_reply_after_a_tool", "API-11", KINDS, _by_turn(_after_a_tool)),
    Mutant("stream_no_model_increments", "API-11", KINDS, _increments(lambda _event: DROP)),
    Mutant("answer_tool_calls_after_the_reply", "API-11", KINDS, of_run(_calls_last)),
    Mutant("reply_with_the_last_increment", "API-11", KINDS, _by_turn(_reply_of_last_increment)),
    Mutant(
        "send_the_final_reply_twice",
        "API-11",
        KINDS,
        wire.events(RUN_SSE, lambda event: [event, event] if is_reply(event) else event),
    ),
    # ---- API-12
    *(
        Mutant(f"{name}_without_{field}", "API-12", REQUIRED, _filled(route, field))
        for name, route in (("run", RUN), ("stream", RUN_SSE))
        for field in ("appName", "userId", "sessionId", "newMessage")
    ),
    Mutant(
        "answer_an_empty_list_for_a_refusal",
        "API-12",
        REQUIRED,
        _nothing_went_wrong(RUN, []),
    ),
    Mutant("answer_refusals_of_run_with_200", "API-12", REQUIRED, _nothing_went_wrong(RUN, None)),
    Mutant(
        "answer_refusals_of_streams_with_200",
        "API-12",
        REQUIRED,
        _nothing_went_wrong(RUN_SSE, {"status": "accepted"}),
    ),
    Mutant("end_a_refused_stream_quietly", "API-12", REQUIRED, wire.events(RUN_SSE, _error)),
    # ---- API-17
    Mutant("tell_an_agent_no_history", "API-17", HISTORY, _history(lambda events: events[-1:])),
    Mutant("tell_an_agent_the_last_turn", "API-17", HISTORY, _of_users(lambda said: said[-2:])),
    Mutant(
        "tell_an_agent_the_first_turn",
        "API-17",
        HISTORY,
        _of_users(lambda said: [*said[:1], *said[1:][-1:]]),
    ),
    Mutant("tell_an_agent_the_last_four", "API-17", HISTORY, _of_users(lambda said: said[-4:])),
    Mutant("tell_an_agent_the_newest_first", "API-17", HISTORY, _of_users(lambda said: said[::-1])),
    Mutant(
        "tell_an_agent_each_text_once",
        "API-17",
        HISTORY,
        _of_users(lambda said: list({one.text: one for one in said}.values())),
    ),
    Mutant("forget_streamed_turns", "API-17", HISTORY, _not_remembered(True)),
    Mutant("forget_turns_of_run", "API-17", HISTORY, _not_remembered(False)),
    Mutant("forget_the_history_once_it_is_read", "API-17", HISTORY, _forgotten_once_read),
    Mutant("strip_what_an_agent_remembers", "API-17", HISTORY, _history_texts(str.strip)),
    Mutant(
        "cut_what_an_agent_remembers_at_256",
        "API-17",
        HISTORY,
        _history_texts(lossy.cut(256)),
    ),
    Mutant("remember_only_ascii", "API-17", HISTORY, _history_texts(lossy.to_ascii)),
    Mutant(
        "remember_only_the_first_line",
        "API-17",
        HISTORY,
        _history_texts(lossy.first_line),
    ),
)
