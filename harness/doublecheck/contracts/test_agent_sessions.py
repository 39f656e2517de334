"""Checks of sessions in API-server mode: ids, lists, histories and deletion (API)."""

from __future__ import annotations

import pytest

from doublecheck.contracts import inputs
from doublecheck.contracts.agent_users import (
    User,
    texts,
)
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.engine import Examples, for_each
from doublecheck.contracts.models import model
from doublecheck.contracts.session_model import SessionsModel


@clause("API-02", writes=True)
def test_a_session_gets_an_id(user: User) -> None:
    """Sessions created without an id get different ids, by which they can be read."""
    ids = [user.create() for _ in range(4)]

    assert [] == [id_ for id_ in ids if not id_]
    assert 4 == len(set(ids)), ids
    assert [True] * 4 == [user.has(id_) for id_ in ids]
    assert [[]] * 4 == [texts(user.history(id_)) for id_ in ids]


@clause("API-03", writes=True)
@for_each(id_=inputs.ids())
def test_a_session_takes_the_id_of_its_path(
    user: User, other_user: User, user_elsewhere: User, id_: str
) -> None:
    """The session has the id of its path and can be read by it. Other users get no session."""
    assert not user.has(id_)

    assert id_ == user.create(id_)
    assert user.has(id_)
    assert id_ in user.ids()
    assert not other_user.has(id_)
    assert user_elsewhere == user or not user_elsewhere.has(id_)
    user.delete(id_)


@clause("API-03", writes=True)
@for_each(id_=inputs.unusual_ids())
def test_an_unusual_id_is_taken_as_it_is_or_refused(user: User, id_: str) -> None:
    """An unusual id is used unchanged or refused: a changed one could be another user's session."""
    if user.may_create(id_):
        assert [id_] == user.ids()
        assert user.has(id_)
        user.delete(id_)


@clause("API-04", writes=True)
def test_a_user_s_sessions_are_listed(user: User, other_user: User, user_elsewhere: User) -> None:
    """The list has all of a user's sessions, also those with custom ids, and no others."""
    assert [] == user.ids()

    first = [user.create(), user.create("named-1")]
    other_ids = [other_user.create(), other_user.create("named-2")]
    assert sorted(first) == user.ids()
    assert sorted(other_ids) == other_user.ids()
    if user_elsewhere != user:
        elsewhere_ids = [user_elsewhere.create(), user_elsewhere.create("named-3")]
        assert sorted(elsewhere_ids) == user_elsewhere.ids()
    all_ids = [*first, *(user.create() for _ in range(9))]
    assert sorted(all_ids) == user.ids()


@clause("API-05", writes=True)
@for_each(cost=2, messages=inputs.histories())
def test_a_session_has_its_history(user: User, messages: list[str]) -> None:
    """The history has each user message, complete and in order, followed by the agent's reply."""
    session, untouched = user.create(), user.create()
    expected = []
    for number, message in enumerate(messages):
        route = ("/run", "/run_sse")[number % 2]
        replied = user.say(session, message, route)
        expected += [message, *texts(replied)]
        assert expected == texts(user.history(session))

    history = user.history(session)
    assert expected == texts(user.history(session)), "the history changed between two reads"
    assert set(messages) <= {event.text for event in history if event.role == "user"}
    assert [] == texts(user.history(untouched))


@clause("API-06", writes=True)
@pytest.mark.parametrize("named", [False, True], ids=["generated", "named"])
def test_a_deleted_session_does_not_exist(
    user: User, other_user: User, user_elsewhere: User, named: bool
) -> None:
    """A deleted session can be neither read nor listed; all other sessions are unchanged."""
    deleted = user.create("deleted" if named else None)
    neighbours = [user.create(), *map(user.create, (f"{deleted}-1", deleted.upper(), deleted[:-1]))]
    others = [candidate for candidate in (other_user, user_elsewhere) if candidate != user]
    for owner in (user, *others):
        if owner is not user:
            owner.create(deleted)
        owner.say(deleted, "hello")
    user.say(neighbours[0], "neighbour")

    assert user.has(deleted)
    user.delete(deleted)

    assert [False, False] == [user.has(deleted) for _ in range(2)]
    assert sorted(neighbours) == user.ids()
    assert "neighbour" in texts(user.history(neighbours[0]))
    assert [[deleted]] * len(others) == [owner.ids() for owner in others]
    assert [True] * len(others) == [
        "hello" in "".join(texts(owner.history(deleted))) for owner in others
    ]


RULES = {
    "API-02": ("create", "create_at_once", "read", "list_"),
    "API-03": ("create", "create_named", "delete", "read", "list_"),
    "API-04": ("create", "create_named", "create_at_once", "delete", "list_"),
    "API-05": ("create", "say", "say_often", "say_at_once", "say_nothing", "read"),
    "API-06": ("create", "create_named", "say", "delete", "read", "list_"),
    "API-18": ("create", "create_named", "say", "say_at_once", "delete", "read", "list_"),
}


@pytest.mark.parametrize(
    "id_", [pytest.param(id_, marks=clause(id_, writes=True)) for id_ in RULES]
)
def test_sessions_are_as_after_any_calls(
    user: User, other_user: User, user_elsewhere: User, examples: Examples, id_: str
) -> None:
    """Whatever was created, run and deleted before, sessions and lists are what they must be."""
    users = (user, other_user, user_elsewhere) if user_elsewhere != user else (user, other_user)
    examples.run_model(model(SessionsModel, RULES[id_], users=users))
