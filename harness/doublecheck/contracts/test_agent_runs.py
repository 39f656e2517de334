"""Checks of runs in API-server mode: their events, as a list and as a stream (API)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from doublecheck.contracts import inputs, wire
from doublecheck.contracts.agent_users import ROUTES, User, ends_in_error, in_step, streamed, texts
from doublecheck.contracts.clauses import clause, for_clauses
from doublecheck.contracts.engine import Examples, for_each
from doublecheck.contracts.models import model
from doublecheck.contracts.session_model import SessionsModel
from doublecheck.values.agents import AgentEvent
from doublecheck.wire import api_server

REQUIRED = ("appName", "userId", "sessionId", "newMessage")


@clause("API-07", reference_app=True, writes=True)
@for_each(text=inputs.texts(empty=False, carriage_returns=True))
def test_a_run_answers_the_message(user: User, text: str) -> None:
    """The agent receives the whole message, each of its parts, unchanged."""
    session = user.create()

    assert f"said: {text} end" == texts(user.say(session, f"said: {text} end"))[-1]
    document = f'{{"text":  {json.dumps(text)} , "n": [ 1.50]}}'
    assert document == texts(user.say(session, document))[-1]
    message = _message("said: ", "", text, " end")
    answer = user.post("/run", {**user.body(session, ""), "newMessage": message})
    assert f"said: {text} end" == _events("/run", answer)[-1].text
    parts = ['{"do": ', "", '"heard"}']
    answer = user.post("/run", {**user.body(session, ""), "newMessage": _message(*parts)})
    assert parts == json.loads(_events("/run", answer)[-1].text)["parts"]


@clause("API-07", reference_app=True, writes=True)
@for_each(replies=inputs.histories())
def test_a_run_returns_every_event(user: User, replies: list[str]) -> None:
    """A run returns everything the agent says in a turn, in order, once each, with every part."""
    session = user.create()
    several = [*replies, *replies]

    assert several == texts(user.order(session, "events", texts=several))
    (event,) = user.order(session, "parts", texts=several)
    assert several == [part["text"] for part in event.parts]
    assert replies[:1] == texts(user.order(session, "events", texts=replies[:1]))


@for_clauses(("API-05", "API-07"), reference_app=True, writes=True)
def test_events_without_text_are_events(user: User, id_: str) -> None:
    """An event whose text is empty is returned and stored like the others."""
    session, several = user.create(), ["first", "", "last"]

    events = user.order(session, "events", texts=several)

    assert several == [part["text"] for event in events for part in event.parts]
    assert [event.parts for event in events] == [it.parts for it in user.history(session)[-3:]]


@clause("API-08", writes=True)
@for_each(text=inputs.texts(empty=False, carriage_returns=True))
def test_a_stream_has_events_as_json(user: User, text: str) -> None:
    """The response is a stream with the same events as the list."""
    session, listing = user.create(), user.create()
    message = f"said: {text}"

    events = user.say(session, message, "/run_sse")

    assert events
    assert texts(user.say(listing, message)) == texts(events)
    assert texts(events) == texts(user.history(session))[1:]


@clause("API-09", writes=True)
@for_each(cost=2, chunks=inputs.histories())
def test_increments_come_as_they_are_produced(user: User, chunks: list[str]) -> None:
    """Each increment arrives before the next one may be produced; the whole text comes last."""
    session = user.create()

    for _ in range(2):
        increments = in_step(user, session, chunks)
        assert "".join(chunks) == increments.pop(), "the whole text is not the last"
        assert "".join(chunks) == "".join(increments)
        assert "".join(chunks) == user.history(session)[-1].text


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
        assert ["whole text"] == texts(user.say(session, "whole text", route, **fields))
        replies = texts(user.say(session, order, route, **fields))
        assert "owl has 3 letters." == replies[-1]
        assert "o" not in replies, "an increment"


@clause("API-10", writes=True)
@pytest.mark.parametrize("route", ROUTES, ids=["list", "stream"])
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "increments"])
def test_events_have_content(user: User, route: str, streaming: bool) -> None:
    """Content has a role and parts. Every turn has a model's reply with text."""
    session = user.create()
    for message in ("hello", "42", "third", "fourth"):
        events = user.say(session, message, route, streaming=streaming)

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
@pytest.mark.parametrize("field", REQUIRED)
@pytest.mark.parametrize("route", ROUTES, ids=["list", "stream"])
def test_four_fields_are_required(user: User, route: str, field: str) -> None:
    """A turn needs all four fields; without one it ends in an error, and the session is unchanged."""
    session = user.create()
    body = user.body(session, "hello")
    assert not ends_in_error(user.post(route, body))
    before = texts(user.history(session))
    del body[field]

    answer = user.post(route, body)

    assert ends_in_error(answer), answer.text
    assert before == texts(user.history(session))


@clause("API-12", reference_app=True, writes=True)
@pytest.mark.parametrize("route", ROUTES, ids=["list", "stream"])
@for_each(text=inputs.texts(empty=False, carriage_returns=True))
def test_the_fields_reach_the_agent(user: User, route: str, text: str) -> None:
    """The agent receives the application, the user, the session, and each part of the message."""
    session = user.create()
    body = user.body(session, "")
    order = json.dumps({"do": "heard"})
    # the reference agent joins the parts of a message to find its action
    body["newMessage"]["parts"] = [{"text": order[:9]}, {"text": order[9:]}]

    answer = user.post(route, body)
    echoed = user.post(route, {**body, "newMessage": _message("said: ", text)})

    reply = json.loads(_events(route, answer)[-1].text)
    assert {
        "parts": [order[:9], order[9:]],
        "app": user.app,
        "user": user.id,
        "session": session,
    } == reply
    assert f"said: {text}" == _events(route, echoed)[-1].text


@clause("API-17", writes=True)
def test_turns_match_their_model(user: User, other_user: User, examples: Examples) -> None:
    """Whatever ran before, also at the same time, a turn sees the messages of its session."""
    rules = (
        *("create", "create_named", "say", "say_at_once", "say_together", "say_nothing"),
        "remember",  # an action that only the reference agent has
    )
    examples.run_model(model(SessionsModel, rules, users=(user, other_user)))


def _around_the_call(events: Sequence[AgentEvent]) -> tuple[list[str], list[str]]:
    """Return the texts before a tool call, including those in its event, and after it."""
    at = next(number for number, event in enumerate(events) if event.function_calls)
    return texts(events[: at + 1]), texts(events[at + 1 :])


def _behind_the_answer(events: Sequence[AgentEvent]) -> list[str]:
    """Return the texts after a tool's answer."""
    at = max(number for number, event in enumerate(events) if event.function_responses)
    return texts(events[at:])


def _message(*some: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": text} for text in some]}


def _events(route: str, answer: Any) -> Any:
    assert answer.is_success, answer.text
    events = api_server.read_events(answer) if route == "/run" else streamed(answer)
    return [event for event in events if event.parts]
