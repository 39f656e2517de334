"""Mutants of the simple application: the streams of its entrypoint, and failures in them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, cast

import pytest
from starlette.responses import Response

from agentdouble.apps import simple_responses as responses
from agentdouble.apps.simple import SimpleApp
from agentdouble.disconnects import EventStreamResponse
from tests.mutants import Mutant, lossy, wire

INVOKE = "POST */invoke"

ONE_EACH = "A streaming entrypoint yields one string per event (6.3)"
STREAMED = "If the entrypoint yields a stream of strings, the response is streamed as SSE (4.1)"
PRODUCED = "If the entrypoint yields a stream of strings, the response is streamed (4.1)"
FAILS = "On failure, the template yields a JSON string with field error (6.3)"
MESSAGE = "Streaming failure: the stream yields a JSON object with error (string message) (7.2)"
GOES_ON = "Other exceptions return Error: <message> text in the examples (7.1)"

Strings = AsyncIterator[str]
Patching = Callable[[pytest.MonkeyPatch], None]


def _strings(change: Callable[[Strings], AsyncGenerator[str, None]]) -> Patching:
    """Change what an entrypoint yields, before it is sent."""

    async def changed(strings: AsyncGenerator[str, None]) -> AsyncIterator[str]:
        async with aclosing(strings), aclosing(change(strings)) as others:
            async for one in others:
                yield one

    def mutant(patch: pytest.MonkeyPatch) -> None:
        whole = SimpleApp._stream

        def stream(app: SimpleApp, strings: Strings) -> AsyncIterator[bytes]:
            return whole(app, changed(cast("AsyncGenerator[str, None]", strings)))

        patch.setattr(SimpleApp, "_stream", stream)

    return mutant


def _each(change: Callable[[str, list[str]], str | list[str]]) -> Patching:
    """Change each string; the function takes it and those before, and returns one or several."""

    async def changed(strings: Strings) -> AsyncGenerator[str, None]:
        before: list[str] = []
        async for one in strings:
            new = change(one, before)
            for other in [new] if isinstance(new, str) else new:
                yield other
            before.append(one)

    return _strings(changed)


async def _hold_all(strings: Strings) -> AsyncGenerator[str, None]:
    held = [one async for one in strings]
    for one in held:
        yield one


def _one_behind(*, last: bool) -> Patching:
    """Send each string when the next one comes, and the last one at the end or never."""

    async def changed(strings: Strings) -> AsyncGenerator[str, None]:
        held: list[str] = []
        async for one in strings:
            held.append(one)
            if len(held) > 1:
                yield held.pop(0)
        for one in held if last else ():
            yield one

    return _strings(changed)


async def _hold_4_kib(strings: Strings) -> AsyncGenerator[str, None]:
    held: list[str] = []
    async for one in strings:
        held.append(one)
        if sum(map(len, held)) >= 4096:
            for full in held:
                yield full
            held.clear()
    for one in held:
        yield one


def _two_by_two(change: Callable[[list[str]], list[str]]) -> Patching:
    """Change two strings when the second one comes; a last one by itself is as it was."""

    async def changed(strings: Strings) -> AsyncGenerator[str, None]:
        held: list[str] = []
        async for one in strings:
            held.append(one)
            if len(held) == 2:
                for other in change(held):
                    yield other
                held.clear()
        for one in held:
            yield one

    return _strings(changed)


async def _say_done(strings: Strings) -> AsyncGenerator[str, None]:
    async for one in strings:
        yield one
    yield "[DONE]"


def _one_stream_at_a_time(patch: pytest.MonkeyPatch) -> None:
    running = asyncio.Semaphore()

    async def changed(strings: Strings) -> AsyncGenerator[str, None]:
        async with running:
            async for one in strings:
                yield one

    _strings(changed)(patch)


def _repeat_the_stream_before(patch: pytest.MonkeyPatch) -> None:
    last: list[str] = []

    async def changed(strings: Strings) -> AsyncGenerator[str, None]:
        for one in last[-1:]:
            yield one
        last.clear()
        async for one in strings:
            last.append(one)
            yield one

    _strings(changed)(patch)


def _plain_text(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EventStreamResponse, "media_type", "text/plain")


def _one_json_string(patch: pytest.MonkeyPatch) -> None:
    whole = SimpleApp._invoke

    async def invoke(app: SimpleApp, *given: Any) -> Response:
        response = await whole(app, *given)
        if not isinstance(response, EventStreamResponse):
            return response
        sent = b"".join([cast("bytes", one) async for one in response.body_iterator])
        lines = [line[6:] for line in sent.decode().split("\n") if line.startswith("data: ")]
        return responses.result("".join(lines))

    patch.setattr(SimpleApp, "_invoke", invoke)


def _first_line(raw: bytes) -> bytes:
    return raw.split(b"\n")[0] + b"\n\n"


STREAMS = (
    ("lose_the_first_string", ONE_EACH, _each(lambda one, before: one if before else [])),
    ("lose_the_second_string", ONE_EACH, _each(lambda one, b: [] if len(b) == 1 else one)),
    ("lose_the_last_string", ONE_EACH, _one_behind(last=False)),
    ("lose_strings_after_the_16th", ONE_EACH, _each(lambda one, b: one if len(b) < 16 else [])),
    ("lose_empty_strings", ONE_EACH, _each(lambda one, _: one or [])),
    ("lose_white_space", ONE_EACH, _each(lambda one, _: [] if one.isspace() else one)),
    (
        "lose_a_string_equal_to_the_one_before",
        ONE_EACH,
        _each(lambda one, before: [] if before[-1:] == [one] else one),
    ),
    ("lose_a_string_that_came_before", ONE_EACH, _each(lambda one, b: [] if one in b else one)),
    (
        "lose_strings_that_look_like_comments",
        ONE_EACH,
        _each(lambda one, _: [] if one.startswith(":") else one),
    ),
    ("strip_the_strings", ONE_EACH, _each(lambda one, _: one.strip())),
    (
        "lose_a_space_at_the_beginning",
        ONE_EACH,
        wire.raw_events(INVOKE, lambda raw: raw.replace(b"data: ", b"data:")),
    ),
    (
        "send_newlines_as_they_are",
        ONE_EACH,
        wire.raw_events(INVOKE, lambda raw: raw.replace(b"\ndata: ", b"\n")),
    ),
    ("send_the_first_line_alone", ONE_EACH, wire.raw_events(INVOKE, _first_line)),
    (
        "send_each_line_as_an_event",
        ONE_EACH,
        wire.raw_events(INVOKE, lambda raw: raw.replace(b"\ndata: ", b"\n\ndata: ")),
    ),
    ("cut_the_strings_at_256_characters", ONE_EACH, _each(lambda one, _: one[:256])),
    (
        "send_long_strings_in_pieces",
        ONE_EACH,
        _each(lambda one, _: [one[at : at + 64] for at in range(0, len(one), 64)] or one),
    ),
    ("send_each_word_as_an_event", ONE_EACH, _each(lambda one, _: one.split(" "))),
    (
        "replace_non_ascii",
        ONE_EACH,
        _each(lambda one, _: lossy.to_ascii(one)),
    ),
    ("format_strings_that_are_json", ONE_EACH, _each(lambda one, _: lossy.compact_json(one))),
    ("repeat_all_that_came_before", ONE_EACH, _each(lambda one, b: "".join([*b, one]))),
    ("send_the_first_string_twice", ONE_EACH, _each(lambda one, b: one if b else [one, one])),
    ("join_two_strings", ONE_EACH, _two_by_two(lambda two: ["".join(two)])),
    ("swap_two_strings", ONE_EACH, _two_by_two(lambda two: two[::-1])),
    ("say_done_at_the_end", ONE_EACH, _strings(_say_done)),
    ("begin_with_the_end_of_the_stream_before", ONE_EACH, _repeat_the_stream_before),
    ("hold_all_back_until_the_end", PRODUCED, _strings(_hold_all)),
    ("hold_one_back", PRODUCED, _one_behind(last=True)),
    ("hold_4_kib_back", PRODUCED, _strings(_hold_4_kib)),
    ("run_one_stream_at_a_time", PRODUCED, _one_stream_at_a_time),
    ("say_it_is_plain_text", STREAMED, _plain_text),
    ("answer_with_one_json_string", STREAMED, _one_json_string),
)


# ---- failures


def _failure(change: Callable[[dict[str, Any]], Any]) -> wire.Change:
    """Change the JSON of the event that tells a failure."""

    def event(document: Any) -> Any:
        is_failure = isinstance(document, dict) and "error" in document
        return change(document) if is_failure else document

    return wire.events(INVOKE, event)


def _raw_failure(change: Callable[[str], bytes]) -> wire.Change:
    """Change the bytes of the event that tells a failure; the function takes its message."""

    def event(raw: bytes) -> bytes:
        if not raw.startswith(b'data: {"error":'):
            return raw
        return change(json.loads(raw[6:])["error"])

    return wire.raw_events(INVOKE, event)


def _first_time(patch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def once(document: dict[str, Any]) -> Any:
        told.append(document["error"])
        return document if len(told) == 1 else wire.DROP

    wire.install(patch, _failure(once))


def _break_off(patch: pytest.MonkeyPatch) -> None:
    async def stream(app: SimpleApp, strings: AsyncGenerator[Any, None]) -> AsyncIterator[bytes]:
        async with aclosing(app._loop.iterate(strings)) as items:
            async for one in items:
                yield responses.event(one)

    patch.setattr(SimpleApp, "_stream", stream)


def _end_silently(*, after_strings: bool) -> Patching:
    """Tell no failure after some strings, or none that comes before any."""

    async def changed(strings: Strings) -> AsyncGenerator[str, None]:
        sent = False
        try:
            async for one in strings:
                yield one
                sent = True
        except RuntimeError:
            if sent is not after_strings:
                raise

    return _strings(changed)


async def _repeat_the_strings(strings: Strings) -> AsyncGenerator[str, None]:
    sent: list[str] = []
    try:
        async for one in strings:
            sent.append(one)
            yield one
    except RuntimeError:
        for one in sent:
            yield one
        raise


FAILURES = (
    ("end_silently", FAILS, _failure(lambda _: wire.DROP)),
    ("end_silently_after_strings", FAILS, _end_silently(after_strings=True)),
    ("end_silently_without_strings", FAILS, _end_silently(after_strings=False)),
    ("tell_the_first_failure_alone", FAILS, _first_time),
    ("break_off_the_connection", FAILS, _break_off),
    ("lose_the_string_before_a_failure", FAILS, _one_behind(last=True)),
    ("repeat_the_strings_before_a_failure", FAILS, _strings(_repeat_the_strings)),
    (
        "call_the_field_detail",
        FAILS,
        _failure(lambda document: {"detail": document["error"]}),
    ),
    ("tell_an_object", MESSAGE, _failure(lambda one: {"error": {"message": one["error"]}})),
    ("tell_a_list", MESSAGE, _failure(lambda one: {"error": [one["error"]]})),
    ("tell_null", MESSAGE, _failure(lambda _: {"error": None})),
    ("tell_true", MESSAGE, _failure(lambda _: {"error": True})),
    ("tell_a_number", MESSAGE, _failure(lambda _: {"error": 500})),
    ("wrap_the_object_in_a_list", MESSAGE, _failure(lambda document: [[document]])),
    ("tell_it_as_text", MESSAGE, _raw_failure(lambda said: b"data: Error: the agent failed\n\n")),
    (
        "leave_quotes_unescaped",
        MESSAGE,
        _raw_failure(lambda said: f'data: {{"error": "{said}"}}\n\n'.encode()),
    ),
    (
        "use_single_quotes",
        MESSAGE,
        _raw_failure(lambda said: f"data: {{'error': '{said}'}}\n\n".encode()),
    ),
    (
        "send_the_object_as_a_comment",
        FAILS,
        _raw_failure(lambda said: f": {json.dumps({'error': said})}\n\n".encode()),
    ),
)


# ---- exceptions beside a stream


def _end_the_running_streams(patch: pytest.MonkeyPatch) -> None:
    failed: list[int] = []

    async def changed(strings: Strings) -> AsyncGenerator[str, None]:
        begun = len(failed)
        async for one in strings:
            if len(failed) > begun:
                return
            yield one

    def note(answer: wire.Answer, _request: wire.Request) -> None:
        if answer.status == 500:
            failed.append(answer.status)

    wire.install(patch, wire.answered(INVOKE, note))
    _strings(changed)(patch)


MUTANTS: tuple[Mutant, ...] = (
    *(Mutant(name, "INV-05", sentence, change) for name, sentence, change in STREAMS),
    *(Mutant(name, "INV-06", sentence, change) for name, sentence, change in FAILURES),
    Mutant("end_the_running_streams_at_an_exception", "INV-07", GOES_ON, _end_the_running_streams),
)
