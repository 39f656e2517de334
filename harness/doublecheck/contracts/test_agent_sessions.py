"""Checks of sessions in API-server mode: ids, lists, histories and deletion (API)."""

from __future__ import annotations

from doublecheck.contracts import inputs
from doublecheck.contracts.agent_users import (
    User,
)
from doublecheck.contracts.clauses import clause, for_clauses
from doublecheck.contracts.engine import Examples, for_each
from doublecheck.contracts.models import model
from doublecheck.contracts.session_model import SessionsModel


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


@for_clauses(("API-03", "API-06"), writes=True)
def test_similar_ids_are_different_sessions(user: User, id_: str) -> None:
    """Ids that differ in case, in a sign or as numbers are created and deleted separately."""
    for number, name in enumerate(inputs.SIMILAR_IDS):
        assert name == user.create(name)
        assert sorted(inputs.SIMILAR_IDS[: number + 1]) == user.ids()
    for number, name in enumerate(inputs.SIMILAR_IDS):
        user.delete(name)
        assert sorted(inputs.SIMILAR_IDS[number + 1 :]) == user.ids()


RULES = {
    "API-02": "create create_at_once read list_sessions",
    "API-03": "create create_named delete read list_sessions",
    "API-04": "create create_named create_at_once delete list_sessions",
    "API-05": "create say say_often say_at_once say_nothing read read_at_once",
    "API-06": "create create_named say delete delete_at_once recreate read list_sessions",
    "API-07": "create say say_often say_at_once say_nothing read",
    "API-08": "create say say_often say_at_once read",
    "API-17": "create create_named say say_at_once say_together say_nothing remember",
    "API-18": "create create_named create_at_once say say_at_once intrude delete read list_sessions",
}


@for_clauses(RULES, writes=True)
def test_sessions_match_their_model(
    user: User, other_user: User, user_elsewhere: User, examples: Examples, id_: str
) -> None:
    """Whatever was created, run and deleted before, histories and lists are complete."""
    users = [user, other_user]
    if id_ != "API-17" and user_elsewhere != user:  # only the reference agent remembers
        users.append(user_elsewhere)
    examples.run_model(model(SessionsModel, RULES[id_].split(), users=users))
