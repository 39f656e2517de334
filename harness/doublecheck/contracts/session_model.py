"""A model of the sessions of users in API-server mode, and of their histories."""

from __future__ import annotations

import functools
import json
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace

from hypothesis import strategies as st

from doublecheck.contracts import inputs
from doublecheck.contracts.agent_users import (
    HISTORY,
    REFERENCE,
    ROUTES,
    User,
    ends_in_error,
    texts,
)
from doublecheck.contracts.engine import at_once
from doublecheck.contracts.sentences import instead, listed
from doublecheck.contracts.sequences import NUMBERS, TEXTS, Model, call, numbered, step

MOST_CALLERS = 5
MOST_SESSIONS = 70  # more than a page of any usual length
MANY_TURNS = 30
ENDED_WITHIN_S = 5.0

[LONG, *_] = inputs.texts(empty=False).always

Place = tuple[int, str]  # the number of an owner, and a session's id

OWNERS = st.integers(0, 2)
ROUTE = st.sampled_from(ROUTES)
SOME = st.lists(NUMBERS, min_size=1, max_size=3, unique=True)


class SessionsModel(Model):
    """The sessions of several users, some with the same ids, and their histories.

    Steps name a session by its number. ``deleted`` are sessions that must not exist any more.
    """

    scenario = (
        call("create", number=0, count=2),
        call("create_named", number=0, id_="a1"),
        call("create_named", number=1, id_="a1"),
        call("say", numbers=[2], text=inputs.INVISIBLE, route="/run"),
        call("create_again", number=2),
        call("intrude", number=2, by=2),
        call("remember", number=2, route="/run_sse"),
        call("delete", numbers=[0]),
        call("list_sessions", number=0),
        call("create_named", number=0, id_="A1"),
        call("say", numbers=[0, 1, 2], text="a", route="/run_sse"),
        call("say_nothing", number=1, route="/run"),
        call("say_nothing", number=1, route="/run_sse"),
        call("fail", number=1, route="/run", texts=["before"]),
        call("fail", number=1, route="/run_sse", texts=["before"]),
        call("fail", number=1, route="/run_sse", texts=[]),
        call("break_off", number=1, text="after"),
        call("say", numbers=[1], text="a", route="/run_sse"),
        call("say", numbers=[1], text="a", route="/run"),
        call("say", numbers=[0], text=LONG, route="/run"),
        call("say_together", number=2, count=3, route="/run"),
        call("remember", number=1, route="/run"),
        call("recreate", number=2),
        call("say_often", number=2, count=MANY_TURNS, route="/run_sse"),
        call("say_often", number=1, count=12, route="/run"),
        call("remember", number=1, route="/run"),
        call("say_often", number=1, count=2, route="/run_sse"),
        call("remember", number=1, route="/run_sse"),
        call("remember", number=2, route="/run"),
        call("read", numbers=[0, 1, 2]),
        call("create", number=0, count=inputs.MANY),
        call("list_sessions", number=0),
        call("delete", numbers=[1, 4, 30]),
        call("list_sessions", number=0),
    )

    def __init__(self, users: Sequence[User]) -> None:
        first, suffix = users[0].id, uuid.uuid4().hex[:12]
        self.owners = [  # one of them has an id that begins with the id of another
            replace(user, id=f"{first}-{suffix}{user.id[len(first) :]}") for user in users
        ]
        self.histories: dict[Place, list[tuple[str | None, str]]] = {}
        self.sent: dict[Place, list[str]] = {}
        self.deleted: list[Place] = []

    @step(number=OWNERS, count=st.sampled_from([1, 1, 2, 5, 40]))
    def create(self, number: int, count: int) -> None:
        """Create sessions with generated ids at the same time, a few of them for several users."""
        count = min(count, MOST_SESSIONS - len(self.histories))
        numbers = [number if count > MOST_CALLERS else number + n for n in range(count)]
        ids = at_once([self._owner(number).create for number in numbers])
        for number, id_ in zip(numbers, ids, strict=True):
            self._created(number, id_)

    @step(number=OWNERS, id_=st.sampled_from(inputs.SIMILAR_IDS))
    def create_named(self, number: int, id_: str) -> None:
        """Create a session with an id that other users may have, too; it may have been deleted."""
        if (number % len(self.owners), id_) not in self.histories:
            created = self._owner(number).create(id_)
            assert id_ == created, f"the created session has the id {instead(created, id_)}"
            self._created(number, id_)

    @step(number=NUMBERS)
    def create_again(self, number: int) -> None:
        """Create a session that exists, which is refused or changes nothing (U-SESSION-DUPLICATE)."""
        for owner, id_ in self._places([number]):
            self.owners[owner].may_create(id_)
            self._read((owner, id_))

    @step(numbers=SOME, text=TEXTS, route=ROUTE)
    def say(self, numbers: list[int], text: str, route: str) -> None:
        """Run a turn, or one in each of several sessions at the same time."""
        places = self._places(numbers)
        messages = [text if len(places) == 1 else f"{place}: {text}" for place in places]
        calls = [self._turn(*turn, route) for turn in zip(places, messages, strict=True)]
        for place, message, replies in zip(places, messages, at_once(calls), strict=True):
            self._said(place, message, replies)

    @step(number=NUMBERS, count=st.integers(3, 7), route=ROUTE)
    def say_often(self, number: int, count: int, route: str) -> None:
        """Run several turns, one after the other."""
        for place in self._places([number]):
            for turn in range(count):
                self._say(place, f"message {turn}", route)

    @step(number=NUMBERS, count=st.integers(2, 4), route=ROUTE)
    def say_together(self, number: int, count: int, route: str) -> None:
        """Run several turns in one session at the same time; the platform may refuse some."""
        for place in self._places([number]):
            owner, id_ = self.owners[place[0]], place[1]
            sent = [f"together {turn}" for turn in range(count)]
            bodies = [owner.body(id_, text) for text in sent]
            answers = at_once([functools.partial(owner.post, route, body) for body in bodies])
            messages = self._read_on(place)
            for text, answer in zip(sent, answers, strict=True):
                assert messages.count(text) <= 1, f"{text!r} was stored twice"
                assert text in messages or ends_in_error(answer), f"{text!r} was lost"

    @step(number=NUMBERS, route=ROUTE)
    def say_nothing(self, number: int, route: str) -> None:
        """Run a turn without a message. If it is refused (API-12), it changes nothing."""
        for place in self._places([number]):
            owner = self.owners[place[0]]
            body = owner.body(place[1], "")
            del body["newMessage"]
            if ends_in_error(owner.post(route, body)):
                self._read(place)
            else:
                self._read_on(place)

    @step(number=NUMBERS, route=ROUTE, texts=st.sampled_from([[], ["before"]]))
    def fail(self, number: int, route: str, texts: list[str]) -> None:
        """Run a turn in which the reference agent raises. What happened before it is kept."""
        for place in self._places([number]):
            owner, id_ = self.owners[place[0]], place[1]
            if owner.app == REFERENCE:
                order = json.dumps({"do": "fail", "texts": texts})
                answer = owner.post(route, owner.body(id_, order))
                assert ends_in_error(answer), f"the agent raised, and {route} is no error"
                self._read_on(place)

    @step(number=NUMBERS, text=TEXTS)
    def break_off(self, number: int, text: str) -> None:
        """Abort a stream; the next turn of the same session has its own reply."""
        owner = self._owner(number)
        id_ = owner.create()
        order = {"do": "stream", "chunks": ["not read", "to its end"], "within_s": 0.2}
        order["gate"] = uuid.uuid4().hex  # which nobody releases
        with closing(owner.stream(id_, json.dumps(order))) as events:
            next(events)
        deadline, body = time.monotonic() + ENDED_WITHIN_S, owner.body(id_, text)
        while ends_in_error(owner.post(ROUTES[0], body)) and time.monotonic() < deadline:
            pass  # the aborted turn may still be running (U-RUN-CONCURRENT)
        for route in ROUTES:
            replies = texts(owner.say(id_, text, route=route))
            assert replies, "after an aborted stream, a turn has no reply"
            if owner.app == REFERENCE:
                assert [text] == replies, f"after an aborted stream, the replies are {replies}"
        owner.delete(id_)

    @step(number=NUMBERS, by=st.integers(1, 2))
    def intrude(self, number: int, by: int) -> None:
        """Run and delete a session as a user who has none of this id, which changes nothing."""
        for place in self._places([number]):
            stranger = (place[0] + by) % len(self.owners)
            if (stranger, place[1]) in self.histories:
                continue
            intruder = self.owners[stranger]
            body = intruder.body(place[1], "intruding")
            texts = [intruder.post(route, body).text for route in ROUTES]
            intruder.platform.request("DELETE", intruder.path(place[1]))
            own = {id_ for owner, id_ in self.histories if owner == stranger}
            # some platforms run a session that does not exist as a new one
            for id_ in {*intruder.ids()} - own:
                intruder.delete(id_)
            # shorter texts may be part of any answer
            secrets = [text for _, text in self.histories[place] if len(text) > 9]
            shown = [secret for text in texts for secret in secrets if secret in text]
            assert not shown, f"another user gets texts of a session: {listed(shown)}"
            self._read(place)

    @step(numbers=SOME)
    def delete(self, numbers: list[int]) -> None:
        """Delete sessions at the same time."""
        places = self._places(numbers)
        at_once([functools.partial(self.owners[n].delete, id_) for n, id_ in places])
        for place in places:
            del self.histories[place]
            self.deleted.append(place)
            self._read(place)
            owner = self.owners[place[0]]
            owner.platform.request("DELETE", owner.path(place[1]))  # U-SESSION-DELETE

    @step(numbers=SOME)
    def read(self, numbers: list[int]) -> None:
        """Read sessions at the same time, which have their histories or have been deleted."""
        places = [*self._places(numbers), *self.deleted[-2:]]
        at_once([functools.partial(self._read, place) for place in places])

    @step(number=NUMBERS)
    def recreate(self, number: int) -> None:
        """Delete a session and create another one with its id."""
        for place in self._places([number]):
            owner = self.owners[place[0]]
            owner.delete(place[1])
            created = owner.create(place[1])
            assert place[1] == created, (
                f"the created session has the id {instead(created, place[1])}"
            )
            self.histories[place], self.sent[place] = [], []
            self._read(place)

    @step(number=NUMBERS, route=ROUTE)
    def remember(self, number: int, route: str) -> None:
        """Ask the reference agent for the messages of the session."""
        for place in self._places([number]):
            self._say(place, HISTORY, route)
            expected, known = self.sent[place], json.loads(self.histories[place][-1][1])
            assert expected == known, f"the agent sees other messages: {instead(known, expected)}"

    @step(number=OWNERS)
    def list_sessions(self, number: int) -> None:
        """List the sessions of an owner."""
        own = [id_ for owner, id_ in self.histories if owner == number % len(self.owners)]
        expected, actual = sorted(own), self._owner(number).ids()
        assert expected == actual, f"the list of sessions is wrong: {instead(actual, expected)}"

    def compare(self) -> None:
        """Fail if a session with turns or a list differs."""
        for place in filter(self.sent.get, self.histories):
            self._read(place)
        for number in range(len(self.owners)):
            self.list_sessions(number)

    def _places(self, numbers: Sequence[int]) -> list[Place]:
        return numbered(self.histories, numbers)

    def _read(self, place: Place) -> None:
        number, id_ = place
        if place not in self.histories:
            assert not self.owners[number].has(id_), f"the deleted session {id_} can be read"
            return
        expected, actual = self.histories[place], self._events(place)
        assert expected == actual, f"the history is wrong: {instead(actual, expected)}"

    def _read_on(self, place: Place) -> list[str]:
        """Take over what a history has gained. Return the user's messages among it."""
        before, after = self.histories[place], self._events(place)
        assert before == after[: len(before)], f"the history of {place[1]} has lost events"
        messages = [text for role, text in after[len(before) :] if role == "user"]
        self.histories[place] = after
        self.sent[place] += messages
        return messages

    def _events(self, place: Place) -> list[tuple[str | None, str]]:
        history = self.owners[place[0]].history(place[1])
        return [(event.role, event.text) for event in history if event.text]

    def _owner(self, number: int) -> User:
        return self.owners[number % len(self.owners)]

    def _created(self, number: int, id_: str) -> None:
        place = (number % len(self.owners), id_)
        assert id_, "a created session has no id"
        assert place not in self.histories, f"{id_} was already the id of another session"
        self.histories[place], self.sent[place] = [], []
        self.deleted = [it for it in self.deleted if it != place]

    def _turn(self, place: Place, text: str, route: str) -> Callable[[], list[str]]:
        number, id_ = place
        return lambda: texts(self.owners[number].say(id_, text, route=route))

    def _say(self, place: Place, text: str, route: str) -> None:
        self._said(place, text, self._turn(place, text, route)())

    def _said(self, place: Place, text: str, replies: Sequence[str]) -> None:
        assert replies, "a turn has no reply"
        self.sent[place].append(text)
        self.histories[place] += [("user", text), *(("model", reply) for reply in replies)]
