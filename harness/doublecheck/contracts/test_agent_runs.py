"""Checks of runs in API-server mode: their events, as a list and as a stream (API)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from doublecheck.contracts import inputs, wire
from doublecheck.contracts.agent_users import ROUTES, User, ends_in_error, in_step, texts
from doublecheck.contracts.clauses import clause, for_clauses
from doublecheck.contracts.engine import for_each
from doublecheck.values.agents import AgentEvent


@clause("API-07", reference_app=True, writes=True)
@for_each(text=inputs.texts(empty=False, carriage_returns=True))
def test_a_run_answers_the_message(user: User, text: str) -> None:
    """The agent receives the whole message, each of its parts, unchanged, and its place."""
    session = user.create()
    document = f'{{"text":  {json.dumps(text)} , "n": [ 1.50]}}'

    for message in ([document], ["said: ", "", text, " end"]):
        assert "".join(message) == texts(user.say(session, *message))[-1]
    parts = ['{"do": ', "", '"heard"}']
    heard = json.loads(user.say(session, *parts)[-1].text)
    assert {"parts": parts, "app": user.app, "user": user.id, "session": session} == heard


@for_clauses(("API-05", "API-07"), reference_app=True, writes=True)
@for_each(cost=2, replies=inputs.histories())
def test_a_run_returns_every_event(user: User, id_: str, replies: list[str]) -> None:
    """Everything that an agent says is returned and stored, in order, once each, in all parts."""
    session, several = user.create(), [*replies, "", *replies]

    events = user.order(session, "events", texts=several)
    (event,) = user.order(session, "parts", texts=replies)

    assert [[text] for text in several] == [[it["text"] for it in event.parts] for event in events]
    assert replies == [part["text"] for part in event.parts]
    stored = [it.parts for it in user.history(session) if it.role == "model"]
    assert [it.parts for it in (*events, event)] == stored


@clause("API-08", writes=True)
@for_each(text=inputs.texts(empty=False, carriage_returns=True))
def test_a_stream_has_events_as_json(user: User, text: str) -> None:
    """Every turn's response is a stream with the same events as the list."""
    session, listing, replies = user.create(), user.create(), []

    for message in (f"said: {text}", "second", "third"):
        streamed = texts(user.say(session, message, route="/run_sse"))
        assert streamed
        assert streamed == texts(user.say(listing, message))
        replies += [message, *streamed]
    assert replies == texts(user.history(session))


@clause("API-09", writes=True)
@for_each(cost=2, chunks=inputs.histories())
def test_increments_come_as_they_are_produced(user: User, chunks: list[str]) -> None:
    """Each increment arrives before the next one may be produced; the whole text comes last."""
    session, whole = user.create(), "".join(chunks)

    increments = in_step(user, session, chunks)

    assert whole == increments.pop(), "the whole text is not the last"
    assert whole == "".join(increments) == user.history(session)[-1].text


@clause("API-09", writes=True)
@for_each(chunks=inputs.histories())
def test_every_streaming_run_has_increments(user: User, chunks: list[str]) -> None:
    """Later turns, whitespace-only text, and text after a tool call also arrive in increments."""
    session, several = user.create(), [*chunks, " ", "\n", "a ", " b"]

    for _ in range(2):
        events = user.order(session, "stream", "/run_sse", streaming=True, chunks=several)
        assert "".join(several) == events[-1].text
        assert "".join(several) == "".join(event.text for event in events[:-1])
        assert len(events) > 2, "all increments were joined"
    called = user.order(session, "tool", "/run_sse", streaming=True, word="owl")
    behind = _behind_the_answer(called)
    assert ["owl has 3 letters."] * 2 == ["".join(behind[:-1]), behind[-1]]


@clause("API-09", reference_app=True, writes=True)
@pytest.mark.parametrize("fields", [{}, {"streaming": False}], ids=["default", "false"])
def test_without_streaming_there_are_no_increments(user: User, fields: dict[str, Any]) -> None:
    """Without streaming, which is the default, each text arrives as a whole."""
    session = user.create()
    order = json.dumps({"do": "tool", "word": "owl"})

    for route in ROUTES:
        assert ["whole text"] == texts(user.say(session, "whole text", route=route, **fields))
        replies = texts(user.say(session, order, route=route, **fields))
        assert "owl has 3 letters." == replies[-1]
        assert "o" not in replies, "an increment"


@clause("API-10", writes=True)
@pytest.mark.parametrize("route", ROUTES, ids=["list", "stream"])
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "increments"])
def test_events_have_content(user: User, route: str, streaming: bool) -> None:
    """Content has a role and parts. Every turn has a model's reply with text."""
    session = user.create()
    for message in ("hello", "42"):
        events = user.say(session, message, route=route, streaming=streaming)

        contents = [event.raw["content"] for event in events]
        assert [] == [content for content in contents if not isinstance(content.get("role"), str)]
        assert [] == [content for content in contents if not isinstance(content.get("parts"), list)]
        assert texts(events), "no reply with text"
        assert {"model"} == {event.role for event in events if event.text}
    assert {"user", "model"} == {event.role for event in user.history(session)}


@clause("API-11", writes=True)
@pytest.mark.parametrize("word", ["owl", "ü"])
def test_events_carry_increments_calls_and_replies(user: User, word: str) -> None:
    """Increments, calls and replies arrive in the order in which they happen."""
    events = user.order(user.create(), "tool", "/run_sse", streaming=True, word=word)

    called = [call for event in events for call in event.function_calls]
    assert [("count_letters", {"word": word})] == [
        (call.get("name"), call.get("args")) for call in called
    ]
    before, behind = _around_the_call(events)
    reply = f"{word} has {len(word)} letters."
    assert len(before) > 1 or len(word) == 1, "no increments"
    # the text before a call is not a final reply: the whole text may also arrive with the call, or
    # not
    assert "".join(before) in (word, word * 2)
    assert reply * 2 == "".join(behind), "not once in increments and once as a whole"
    assert reply == behind[-1]


@clause("API-11", writes=True)
@pytest.mark.parametrize("route", ROUTES, ids=["list", "stream"])
@for_each(args=inputs.payloads())
def test_calls_carry_their_arguments_and_answers(
    user: User, route: str, args: dict[str, Any]
) -> None:
    """Each time, the call, its answer and the reply after it arrive."""
    session = user.create()
    for reply in ("once", "twice"):
        events = user.order(session, "call", route, args=args, response={"is": args}, reply=reply)

        calls = [call for event in events for call in event.function_calls]
        answers = [answer for event in events for answer in event.function_responses]
        called = [[call.get("name"), call.get("args", {})] for call in calls]
        assert wire.same([["look_up", args]], called)
        responses = [[answer.get("name"), answer.get("response")] for answer in answers]
        assert wire.same([["look_up", {"is": args}]], responses)
        order = [bool(event.function_calls) or -bool(event.function_responses) for event in events]
        assert [True, -1] == [kind for kind in order if kind]
        assert [reply] == texts(events)
        assert reply == events[-1].text


@clause("API-12", writes=True)
@pytest.mark.parametrize("route", ROUTES, ids=["list", "stream"])
def test_four_fields_are_required(user: User, route: str) -> None:
    """A turn needs all four fields; without one it ends in an error, and the session is unchanged."""
    session = user.create()
    body = user.body(session, "hello")
    assert not ends_in_error(user.post(route, body))
    before = texts(user.history(session))

    for field in ("appName", "userId", "sessionId", "newMessage"):
        answer = user.post(route, {name: value for name, value in body.items() if name != field})
        assert ends_in_error(answer), f"without {field}: {answer.text}"
    assert before == texts(user.history(session))


def _around_the_call(events: Sequence[AgentEvent]) -> tuple[list[str], list[str]]:
    """Return the texts before a tool call, including those in its event, and after it."""
    at = next(number for number, event in enumerate(events) if event.function_calls)
    return texts(events[: at + 1]), texts(events[at + 1 :])


def _behind_the_answer(events: Sequence[AgentEvent]) -> list[str]:
    """Return the texts after a tool's answer."""
    at = max(number for number, event in enumerate(events) if event.function_responses)
    return texts(events[at:])
