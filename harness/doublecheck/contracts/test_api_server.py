"""Checks of applications, of sessions, and of the separation of users (API)."""

from __future__ import annotations

import unicodedata

import pytest

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import inputs, sequences, wire
from doublecheck.contracts.agent_users import REFERENCE, SECOND, User, ends_in_error, new_id, texts
from doublecheck.contracts.clauses import clause, for_clauses
from doublecheck.contracts.engine import Examples, for_each
from doublecheck.contracts.inputs import Input
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.contracts.sentences import instead, listed, short
from doublecheck.contracts.session_model import SessionsModel
from doublecheck.contracts.verdicts import Verdict

HEALTHY = {"ok", "up", "pass", "healthy", "true"}


TIMES = 6
NAMES = Input(inputs.ids(40).strategy, (*inputs.ids(40).always[:1], "folder/a b", "ü 日本"))


@clause("API-01")
def test_the_applications_are_listed(platform: Platform) -> None:
    """The list has every application of the directory, once each, every time."""
    names = sorted(platform.agents.list_apps())

    assert names, "no application is listed"
    assert "" not in names, "an application has no name"
    assert sorted(set(names)) == names, f"an application is listed twice: {listed(names)}"
    again, expected = [sorted(platform.agents.list_apps()) for _ in range(TIMES)], [names] * TIMES
    assert expected == again, f"the list changes: {instead(again, expected)}"
    if platform.target.reference_app:
        assert REFERENCE in names, f"{REFERENCE} is not listed"
        assert SECOND in names or platform.target.kind == "live", f"{SECOND} is not listed"


@clause("API-03", writes=True)
@for_each(id_=inputs.ids(), unusual=inputs.unusual_ids())
def test_a_session_takes_the_id_of_its_path(
    user: User, other_user: User, user_elsewhere: User, id_: str, unusual: str
) -> None:
    """The session has the id of its path and can be read by it. Other users get no session.

    An unusual id is used unchanged or refused: a changed one could be another user's session.
    """
    assert not user.has(id_), "a session exists before it is created"

    created = user.create(id_)
    assert id_ == created, f"the created session has the id {instead(created, id_)}"
    assert user.has(id_), "the created session cannot be read"
    user.may_create(id_)  # which is refused or changes nothing (U-SESSION-DUPLICATE)
    assert user.has(id_), "a session has gone after its id was used again"
    _require_ids(user, [id_])
    assert not other_user.has(id_), "another user has the session"
    is_apart = user_elsewhere == user or not user_elsewhere.has(id_)
    assert is_apart, "another application has the session"
    user.delete(id_)
    if user.may_create(unusual):
        _require_ids(user, [unusual])
        assert user.has(unusual), f"the created session {unusual!r} cannot be read"
        composed, decomposed = (unicodedata.normalize(form, unusual) for form in ("NFC", "NFD"))
        if composed != decomposed:
            other = composed if unusual == decomposed else decomposed
            assert not user.has(other), "a session is found by another Unicode form of its id"
        user.delete(unusual)


@for_clauses(("API-03", "API-06"), writes=True)
def test_similar_ids_are_different_sessions(user: User, id_: str) -> None:
    """Ids that differ in case, in a sign or as numbers are created and deleted separately."""
    names = inputs.SIMILAR_IDS
    for number, name in enumerate(names, 1):
        created = user.create(name)
        assert name == created, f"the created session has the id {instead(created, name)}"
        _require_ids(user, sorted(names[:number]))
    for number, name in enumerate(names, 1):
        user.delete(name)
        _require_ids(user, sorted(names[number:]))


def _require_ids(user: User, expected: list[str]) -> None:
    ids = user.ids()
    assert expected == ids, f"the list of sessions is wrong: {instead(ids, expected)}"


def _require_artifacts(user: User, session: str, expected: list[str]) -> None:
    names = user.artifacts(session)
    assert expected == names, f"the list of artifacts is wrong: {instead(names, expected)}"


STEPS = {
    "API-02": "create read list_sessions",
    "API-04": "create create_named delete list_sessions",
    "API-05": "create create_again say say_often say_nothing fail break_off read",
    "API-06": "create create_named say delete recreate read list_sessions",
    "API-08": "create say break_off read",
    "API-17": "create create_named say say_often say_together say_nothing fail remember",
    "API-18": "create create_named say intrude delete read list_sessions",
}


@for_clauses(STEPS, writes=True)
def test_sessions_match_their_model(
    user: User, other_user: User, user_elsewhere: User, examples: Examples, id_: str
) -> None:
    """Whatever was created, run and deleted before, histories and lists are complete."""
    users = [user, other_user]
    if id_ != "API-17" and user_elsewhere != user:  # only the reference agent remembers
        users.append(user_elsewhere)
    steps = SessionsModel.sequences(STEPS[id_].split(), 16)
    sequences.run(examples, lambda: SessionsModel(users), steps)


@clause("API-13", reference_app=True, writes=True)
@for_each(cost=2, name=NAMES)
def test_a_session_s_artifacts_are_listed(user: User, other_user: User, name: str) -> None:
    """The list has all artifacts saved in a session by name, and none of other sessions or users."""
    session, neighbour = user.create(), user.create()
    other_user.create(session)
    many = inputs.many("number {:02}.txt")
    names = [f"{name}.txt", f"{name}.2", *many, "last.png"]

    user.order(session, "save", names=names[:1])
    _require_artifacts(user, session, names[:1])
    user.order(session, "save", names=names[1:])
    user.order(neighbour, "save", names=["neighbour.txt"])

    _require_artifacts(user, session, sorted(names))
    _require_artifacts(user, neighbour, ["neighbour.txt"])
    _require_artifacts(other_user, session, [])
    other_user.delete(session)


@clause("API-14")
def test_health_answers(platform: Platform) -> None:
    """/health succeeds every time."""
    answers = [platform.request("GET", "/health", surface="api_server") for _ in range(TIMES)]

    failed = [answer.status_code for answer in answers if not answer.is_success]
    assert [] == failed, f"GET /health is answered {listed(failed)}"
    assert not wire.error_in(answers[0]), f"health is an error: {short(answers[0].text)}"


@clause("API-15")
def test_version_answers(platform: Platform) -> None:
    """/version returns the same version every time, in words or numbers. It is not a health."""
    first, second = (platform.request("GET", "/version") for _ in range(2))

    assert first.is_success, f"GET /version is answered {first.status_code}"
    assert "html" not in first.headers.get("content-type", ""), "the version is a page"
    assert not wire.error_in(first), f"the version is an error: {short(first.text)}"
    before, after = (wire.words_of(answer).items() for answer in (first, second))
    changed = [word for place, word in before ^ after if "version" in str(place)]
    assert [] == changed, f"the version changes: {listed(changed)}"
    assert {word for _, word in before & after} - HEALTHY, f"no version: {first.text}"


@clause("API-16")
def test_applications_are_named_by_directories(platform: Platform) -> None:
    """Each name is a single path segment."""
    names = platform.agents.list_apps()

    wrong = [name for name in names if "/" in name or "\\" in name or name in ("", ".", "..")]
    assert [] == wrong, f"names that are not a directory's: {listed(map(repr, wrong))}"


@clause("API-16", writes=True)
@pytest.mark.parametrize("route", ["/run", "/run_sse"], ids=["list", "stream"])
def test_an_application_that_is_not_listed_does_not_run(
    user: User, leftovers: Leftovers, route: str
) -> None:
    """Unknown names, even similar ones, do not run; the listed name runs."""
    session, names = user.create(), user.platform.agents.list_apps()
    assert user.say(session, "hello", route=route), "the listed application does not answer"

    app = user.app
    nearly = (app[:-1], app[:3], f"{app}_", f"{app}x", app.upper(), app.title(), f"no_{new_id()}")
    for name in sorted({*nearly}.difference(names)):
        stranger = user.of(name)
        leftovers.user(name, user.id)
        created = stranger.may_create(session)  # may be refused here, or when it runs
        answer = stranger.post(route, stranger.body(session, "hello"))
        assert ends_in_error(answer), f"{name!r} is not listed, but runs"
        has_run = created and "hello" in "".join(texts(stranger.history(session)))
        assert not has_run, f"{name!r} is refused, but its history has the message"


@clause("API-18", writes=True)
@pytest.mark.parametrize(
    ("name", "other_name"),
    [
        *(("anna", "ANNA"), ("anna@a.example", "anna@b.example"), ("Ána", "Ana")),
        *(("a" * 40, "a" * 39), ("a%2541", "a%41"), ("%41", "A"), ("007", "7")),
        ("\N{LATIN SMALL LETTER E WITH ACUTE}", "e\N{COMBINING ACUTE ACCENT}"),
    ],
)
def test_users_with_similar_ids_are_separate(
    platform: Platform, leftovers: Leftovers, app: str, name: str, other_name: str
) -> None:
    """Capitals, accents, the part after an @, and the last letter distinguish users."""
    shared = new_id()
    first, second = (User(platform, app, f"{shared}{name}") for name in (name, other_name))
    for user in (first, second):
        leftovers.user(app, user.id)
    if not (first.may_create(shared) and second.may_create("mine")):
        pytest.skip(f"{Verdict.NOT_OBSERVABLE.value}: the platform refuses such user ids")

    first.say(shared, "a secret")

    _require_ids(first, [shared])
    _require_ids(second, ["mine"])
    assert not second.has(shared), "a user with a similar id has the session"
    leaked = "a secret" in "".join(texts(second.history("mine")))
    assert not leaked, "a user with a similar id has the message in a history"


@clause("API-18", reference_app=True, writes=True)
def test_an_agent_sees_its_own_user_s_session(user: User, other_user: User) -> None:
    """An agent sees the history, the user and the artifacts of the session that runs."""
    shared = new_id()
    for who, secret in ((user, "first"), (other_user, "second")):
        who.create(shared)
        who.say(shared, secret)
        who.order(shared, "save", names=[f"{secret}.txt"])

    histories = [who.order(shared, "history")[-1].text for who in (user, other_user)]

    own = [("first" in text, "second" in text) for text in histories]
    assert [(True, False), (False, True)] == own, "an agent sees the history of another user"
    _require_artifacts(user, shared, ["first.txt"])
    _require_artifacts(other_user, shared, ["second.txt"])
    for who in (user, other_user):
        heard = who.order(shared, "heard")[-1].text
        assert f'"user": "{who.id}"' in heard, f"an agent sees another user: {short(heard)}"
