"""Checks of runs in API-server mode: their events, as a list and as a stream (API)."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from doublecheck.contracts import inputs, wire
from doublecheck.contracts.agent_users import (
    ROUTES,
    User,
    ends_in_error,
    in_step,
    streamed,
    texts,
)
from doublecheck.contracts.clauses import clause, for_clauses
from doublecheck.contracts.engine import for_each
from doublecheck.contracts.sentences import instead, listed, short
from doublecheck.wire import api_server

CONCLUSION = "owl has 3 letters."  # of the reference agent, after a tool call


@clause("API-07", reference_app=True, writes=True)
@for_each(text=inputs.texts(empty=False, carriage_returns=True))
def test_a_run_answers_the_message(user: User, text: str) -> None:
    """The agent receives the whole message, each of its parts, unchanged, and its place."""
    session = user.create()
    document = f'{{"text":  {json.dumps(text)} , "n": [ 1.50]}}'

    for message in ([document], ["said: ", "", text, " end"]):
        expected, reply = "".join(message), texts(user.say(session, *message))[-1]
        assert expected == reply, f"the agent gets {instead(reply, expected)}"
    parts = ['{"do": ', "", '"heard"}', *[" "] * inputs.MANY]
    heard = json.loads(user.say(session, *parts)[-1].text)
    sent = {"parts": parts, "app": user.app, "user": user.id, "session": session}
    assert sent == heard, f"the agent gets a turn {instead(heard, sent)}"


@for_clauses(("API-05", "API-07", "API-08", "API-10"), reference_app=True, writes=True)
@for_each(cost=2, replies=inputs.histories())
def test_a_run_returns_every_event(user: User, id_: str, replies: list[str]) -> None:
    """Everything that an agent says is returned and stored, in order, once each, in all parts."""
    session, several = user.create(), [*replies, "", *replies]
    route = "/run_sse" if id_ == "API-08" else "/run"

    events = user.order(session, "events", route, texts=several)
    (event,) = user.order(session, "parts", route, texts=replies)

    expected = [[text] for text in several]
    returned = [[part["text"] for part in it.parts] for it in events]
    assert expected == returned, f"the run returns events {instead(returned, expected)}"
    returned_parts = [part["text"] for part in event.parts]
    assert replies == returned_parts, f"the event has parts {instead(returned_parts, replies)}"
    stored = [it.parts for it in user.history(session) if it.role == "model"]
    sent = [it.parts for it in (*events, event)]
    assert sent == stored, f"the history has events {instead(stored, sent)}"


@clause("API-08", writes=True)
@for_each(text=inputs.texts(empty=False, carriage_returns=True))
def test_a_stream_has_events_as_json(user: User, text: str) -> None:
    """Every turn's response is a stream with the same events as the list."""
    session, listing, replies = user.create(), user.create(), []

    for message in (f"said: {text}", "second", "third"):
        streamed = texts(user.say(session, message, route="/run_sse"))
        assert streamed, "the stream has no reply"
        whole = texts(user.say(listing, message))
        assert streamed == whole, f"the list has other replies: {instead(whole, streamed)}"
        replies += [message, *streamed]
    stored = texts(user.history(session))
    assert replies == stored, f"the history is wrong: {instead(stored, replies)}"


@for_clauses(("API-07", "API-08"), writes=True)
def test_a_run_does_not_depend_on_what_is_accepted(user: User, id_: str) -> None:
    """A client that accepts anything gets a list from /run and a stream from /run_sse."""
    session, is_list = user.create(), id_ == "API-07"
    for accepted in wire.ACCEPTED:
        body = user.body(session, "said: hello")
        request = user.run("/run" if is_list else "/run_sse", body, Accept=accepted)
        answers = [user.platform.send(request)]
        if accepted == wire.ACCEPTED[0]:
            answers.append(wire.send_in_parts(user.platform, request))

        for answer in answers:
            assert answer.is_success, f"HTTP {answer.status_code} with Accept: {accepted}"
            events = api_server.read_events(answer) if is_list else streamed(answer)
            assert texts(events), f"no reply with Accept: {accepted}"


@clause("API-09", writes=True)
@for_each(cost=2, chunks=inputs.histories())
def test_increments_come_as_they_are_produced(user: User, chunks: list[str]) -> None:
    """Each increment arrives before the next one may be produced; the whole text comes last."""
    session, whole = user.create(), "".join(chunks)

    increments = in_step(user, session, chunks)

    assert whole == increments.pop(), "the whole text is not the last"
    joined, stored = "".join(increments), user.history(session)[-1].text
    assert whole == joined, f"the increments are {instead(joined, whole)}"
    assert whole == stored, f"the history has {instead(stored, whole)}"


@clause("API-09", writes=True)
@for_each(chunks=inputs.histories())
def test_every_streaming_run_has_increments(user: User, chunks: list[str]) -> None:
    """Later turns, whitespace-only text, and text after a tool call also arrive in increments."""
    session, several = user.create(), [*chunks, " ", "\n", "a ", " b"]

    for _ in range(2):
        events = user.order(session, "stream", "/run_sse", streaming=True, chunks=several)
        whole, last = "".join(several), events[-1].text
        joined = "".join(event.text for event in events[:-1])
        assert whole == last, f"the last event has {instead(last, whole)}"
        assert whole == joined, f"the increments are {instead(joined, whole)}"
        assert len(events) > 2, "all increments were joined"
    many = inputs.many("{} ")
    events = user.order(session, "stream", "/run_sse", streaming=True, chunks=many)
    increments = [event.text for event in events[:-1]]
    assert "".join(many) == events[-1].text, "the whole text has not every increment"
    assert "".join(many) == "".join(increments), f"{len(increments)} increments of {len(many)}"
    called = user.order(session, "tool", "/run_sse", streaming=True, word="owl")
    at = max(number for number, event in enumerate(called) if event.function_responses)
    *increments, reply = texts(called[at:])
    assert CONCLUSION == reply, f"after a tool call, the reply is {short(reply)}"
    assert CONCLUSION == "".join(increments), f"after a tool call, increments: {short(increments)}"


@clause("API-09", reference_app=True, writes=True)
@pytest.mark.parametrize("fields", [{}, {"streaming": False}], ids=["default", "false"])
def test_without_streaming_there_are_no_increments(user: User, fields: dict[str, Any]) -> None:
    """Without streaming, which is the default, each text arrives as a whole."""
    session = user.create()
    order = json.dumps({"do": "tool", "word": "owl"})

    for route in ROUTES:
        whole = texts(user.say(session, "whole text", route=route, **fields))
        assert ["whole text"] == whole, f"{route} without streaming has {listed(whole)}"
        replies = texts(user.say(session, order, route=route, **fields))
        assert CONCLUSION == replies[-1], f"after a tool call, the reply is {short(replies[-1])}"
        assert "o" not in replies, f"{route} without streaming has increments"


@clause("API-10", writes=True)
@pytest.mark.parametrize("route", ROUTES, ids=["list", "stream"])
def test_events_have_content(user: User, route: str) -> None:
    """Content has a role and parts. Every turn has a model's reply with text."""
    session = user.create()
    for message, streaming in itertools.product(("hello", "42"), (False, True)):
        events = user.say(session, message, route=route, streaming=streaming)

        for content in (event.raw["content"] for event in events):
            types = wire.types(content, ("role", "parts"))
            assert {"role": "str", "parts": "list"} == types, f"content has the types {types}"
        assert texts(events), "no event has a text"
        roles = {str(event.role) for event in events if event.text}
        assert {"model"} == roles, f"replies have the roles {listed(sorted(roles))}"
    roles = {str(event.role) for event in user.history(session)}
    assert {"user", "model"} == roles, f"the history has the roles {listed(sorted(roles))}"


@clause("API-11", writes=True)
def test_events_carry_increments_calls_and_replies(user: User) -> None:
    """Increments, calls and replies arrive in the order in which they happen."""
    events = user.order(user.create(), "tool", "/run_sse", streaming=True, word="owl")

    called = [call for event in events for call in event.function_calls]
    expected = [("count_letters", {"word": "owl"})]
    calls = [(it.get("name"), it.get("args")) for it in called]
    assert expected == calls, f"the tool calls are {instead(calls, expected)}"
    at = next(number for number, event in enumerate(events) if event.function_calls)
    before, (*increments, reply) = texts(events[: at + 1]), texts(events[at + 1 :])
    assert len(before) > 1, "there are no increments before the tool call"
    # it is not a final reply: the whole text may also arrive with the call, or not
    assert "".join(before) in ("owl", "owlowl"), f"before the call, increments: {short(before)}"
    assert CONCLUSION == reply, f"after a tool call, the reply is {short(reply)}"
    assert CONCLUSION == "".join(increments), f"after a tool call, increments: {short(increments)}"


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
        expected = [["look_up", args]]
        assert wire.same(expected, called), f"the tool calls are {instead(called, expected)}"
        responses = [[answer.get("name"), answer.get("response")] for answer in answers]
        expected = [["look_up", {"is": args}]]
        assert wire.same(expected, responses), f"tools answer {instead(responses, expected)}"
        order = [bool(event.function_calls) or -bool(event.function_responses) for event in events]
        assert [True, -1] == [kind for kind in order if kind], "call and answer are in disorder"
        replies = texts(events)
        assert [reply] == replies, f"the replies are {listed(replies)}"
        assert reply == events[-1].text, "the reply is not the last event"


@clause("API-12", writes=True)
@pytest.mark.parametrize("route", ROUTES, ids=["list", "stream"])
def test_four_fields_are_required(user: User, route: str) -> None:
    """A turn needs all four fields; without one it ends in an error, and the session is unchanged."""
    session = user.create()
    body = user.body(session, "hello")
    assert not ends_in_error(user.post(route, body)), "a run with all fields ends in an error"
    before = texts(user.history(session))

    for field in ("appName", "userId", "sessionId", "newMessage"):
        answer = user.post(route, {name: value for name, value in body.items() if name != field})
        if not ends_in_error(answer):
            pytest.fail(f"A run without {field} is answered {answer.status_code}.")
    after = texts(user.history(session))
    assert before == after, f"a refused run changes the history: {instead(after, before)}"
