"""A model of the sessions of users in API-server mode, and of their histories."""

from __future__ import annotations

import functools
import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, consumes, multiple, rule

from doublecheck.contracts import inputs
from doublecheck.contracts.agent_users import HISTORY, ROUTES, User, ends_in_error, texts
from doublecheck.contracts.engine import TEXTS, Model, at_once
from doublecheck.contracts.sentences import instead, listed

MOST_CALLERS = 5
MOST_SESSIONS = 50  # more than a page of any usual length

Place = tuple[int, str]  # the number of an owner, and a session's id

OWNERS = st.integers(0, 2)


class SessionsModel(Model):
    """The sessions of several users, some with the same ids, and their histories.

    ``users`` are the owners; each sequence gets new ones.
    """

    users: ClassVar[Sequence[User]]
    sessions: Bundle[Place] = Bundle("sessions")
    SOME_SESSIONS = st.lists(sessions, min_size=1, max_size=3, unique=True)

    def __init__(self) -> None:
        super().__init__()
        first, suffix = self.users[0].id, uuid.uuid4().hex[:12]
        self.owners = [  # one of them has an id that begins with the id of another
            replace(user, id=f"{first}-{suffix}{user.id[len(first) :]}") for user in self.users
        ]
        self.histories: dict[Place, list[tuple[str | None, str]]] = {}
        self.sent: dict[Place, list[str]] = {}

    @rule(target=sessions, number=OWNERS, count=st.sampled_from([1, 1, 2, 5, 40]))
    def create(self, number: int, count: int) -> Any:
        """Create sessions with generated ids at the same time, a few of them for several users."""
        count = min(count, MOST_SESSIONS - len(self.histories))
        numbers = [number if count > MOST_CALLERS else number + n for n in range(count)]
        ids = at_once([self._owner(number).create for number in numbers])
        return multiple(*map(self._created, numbers, ids))

    @rule(target=sessions, number=OWNERS, id_=st.sampled_from(inputs.SIMILAR_IDS))
    def create_named(self, number: int, id_: str) -> Any:
        """Create a session with an id that other users may have, too; it may have been deleted."""
        place = (number % len(self.owners), id_)
        if place in self.histories:
            return multiple()
        created = self._owner(number).create(id_)
        assert id_ == created, f"the created session has the id {instead(created, id_)}"
        return self._created(number, id_)

    @rule(places=SOME_SESSIONS, text=TEXTS, route=st.sampled_from(ROUTES))
    def say(self, places: list[Place], text: str, route: str) -> None:
        """Run a turn, or one in each of several sessions at the same time."""
        places = [place for place in places if place in self.histories]
        texts = [text if len(places) == 1 else f"{place}: {text}" for place in places]
        calls = [self._turn(*turn, route) for turn in zip(places, texts, strict=True)]
        for place, text, replies in zip(places, texts, at_once(calls), strict=True):
            self._said(place, text, replies)

    @rule(place=sessions, count=st.integers(3, 7), route=st.sampled_from(ROUTES))
    def say_often(self, place: Place, count: int, route: str) -> None:
        """Run several turns, one after the other."""
        for number in range(count if place in self.histories else 0):
            self._say(place, f"message {number}", route)

    @rule(place=sessions, count=st.integers(2, 4), route=st.sampled_from(ROUTES))
    def say_together(self, place: Place, count: int, route: str) -> None:
        """Run several turns in one session at the same time; the platform may refuse some."""
        if place not in self.histories:
            return
        owner, id_ = self.owners[place[0]], place[1]
        before, sent = len(self.histories[place]), [f"together {number}" for number in range(count)]
        bodies = [owner.body(id_, text) for text in sent]
        answers = at_once([functools.partial(owner.post, route, body) for body in bodies])
        history = self._events(place)[before:]
        messages = [text for role, text in history if role == "user"]
        for text, answer in zip(sent, answers, strict=True):
            assert messages.count(text) <= 1, f"{text!r} was stored twice"
            assert text in messages or ends_in_error(answer), f"{text!r} was lost"
        self.sent[place] += messages
        self.histories[place] += history

    @rule(place=sessions, route=st.sampled_from(ROUTES))
    def say_nothing(self, place: Place, route: str) -> None:
        """Run a turn without a message, which changes nothing if it is refused (API-12)."""
        if place not in self.histories:
            return
        owner = self.owners[place[0]]
        body = owner.body(place[1], "")
        del body["newMessage"]
        if not ends_in_error(owner.post(route, body)):
            self.histories[place] = self._events(place)
            self.sent[place] = [text for role, text in self.histories[place] if role == "user"]

    @rule(place=sessions, number=st.integers(1, 2))
    def intrude(self, place: Place, number: int) -> None:
        """Run and delete a session as a user who has none of this id, which changes nothing."""
        number = (place[0] + number) % len(self.owners)
        if (number, place[1]) not in self.histories:
            intruder = self.owners[number]
            body = intruder.body(place[1], "intruding")
            texts = [intruder.post(route, body).text for route in ROUTES]
            intruder.platform.request("DELETE", intruder.path(place[1]))
            own = {id_ for owner, id_ in self.histories if owner == number}
            # some platforms run a session that does not exist as a new one
            for id_ in {*intruder.ids()} - own:
                intruder.delete(id_)
            # shorter texts may be part of any answer
            secrets = [text for _, text in self.histories.get(place, ()) if len(text) > 9]
            shown = [secret for text in texts for secret in secrets if secret in text]
            assert not shown, f"another user gets texts of a session: {listed(shown)}"
            self._read(place)

    @rule(places=st.lists(consumes(sessions), min_size=1, max_size=3, unique=True))
    def delete(self, places: list[Place]) -> None:
        """Delete sessions at the same time."""
        places = [place for place in places if self.histories.pop(place, None) is not None]
        at_once([functools.partial(self.owners[n].delete, id_) for n, id_ in places])
        for place in places:
            self._read(place)

    @rule(places=SOME_SESSIONS)
    def read(self, places: list[Place]) -> None:
        """Read sessions at the same time, which have their histories or have been deleted."""
        at_once([functools.partial(self._read, place) for place in places])

    @rule(place=sessions)
    def recreate(self, place: Place) -> None:
        """Delete a session and create another one with its id."""
        if place in self.histories:
            owner = self.owners[place[0]]
            owner.delete(place[1])
            created = owner.create(place[1])
            assert place[1] == created, (
                f"the created session has the id {instead(created, place[1])}"
            )
            self.histories[place], self.sent[place] = [], []
            self._read(place)

    def _read(self, place: Place) -> None:
        number, id_ = place
        if place not in self.histories:
            assert not self.owners[number].has(id_), f"the deleted session {id_} can be read"
            return
        expected, actual = self.histories[place], self._events(place)
        assert expected == actual, f"the history is wrong: {instead(actual, expected)}"

    @rule(place=sessions, route=st.sampled_from(ROUTES))
    def remember(self, place: Place, route: str) -> None:
        """Ask the reference agent for the messages of the session."""
        if place in self.histories:
            self._say(place, HISTORY, route)
            expected, known = self.sent[place], json.loads(self.histories[place][-1][1])
            assert expected == known, f"the agent sees other messages: {instead(known, expected)}"

    @rule(number=OWNERS)
    def list_sessions(self, number: int) -> None:
        """List the sessions of an owner."""
        self._list(number % len(self.owners))

    def _list(self, number: int) -> None:
        expected = sorted(id_ for owner, id_ in self.histories if owner == number)
        actual = self.owners[number].ids()
        assert expected == actual, f"the list of sessions is wrong: {instead(actual, expected)}"

    def compare(self) -> None:
        """Fail if a session with turns or a list differs."""
        for place in filter(self.sent.get, self.histories):
            self._read(place)
        for number in range(len(self.owners)):
            self._list(number)

    def _events(self, place: Place) -> list[tuple[str | None, str]]:
        history = self.owners[place[0]].history(place[1])
        return [(event.role, event.text) for event in history if event.text]

    def _owner(self, number: int) -> User:
        return self.owners[number % len(self.owners)]

    def _created(self, number: int, id_: str) -> Place:
        place = (number % len(self.owners), id_)
        assert id_, "a created session has no id"
        assert place not in self.histories, f"{id_} was already the id of another session"
        self.histories[place], self.sent[place] = [], []
        return place

    def _turn(self, place: Place, text: str, route: str) -> Callable[[], list[str]]:
        number, id_ = place
        return lambda: texts(self.owners[number].say(id_, text, route=route))

    def _say(self, place: Place, text: str, route: str) -> None:
        self._said(place, text, self._turn(place, text, route)())

    def _said(self, place: Place, text: str, replies: Sequence[str]) -> None:
        assert replies, "a turn has no reply"
        self.sent[place].append(text)
        self.histories[place] += [("user", text), *(("model", reply) for reply in replies)]
