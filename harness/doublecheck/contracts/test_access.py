"""Checks of authentication and access (AUT)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import agent_users, forgeries, hosting
from doublecheck.contracts.agent_users import (
    HISTORY,
    REFERENCE,
    ROUTES,
    User,
    in_step,
    new_id,
    texts,
)
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.engine import at_once
from doublecheck.contracts.hosting import Hosted
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.contracts.sentences import instead, listed, short
from doublecheck.contracts.verdicts import Verdict, not_observable

TRIES = 2


@pytest.fixture
def local(platform: Platform) -> Platform:
    """The platform, if it is a local one without a known key."""
    if platform.target.key_of("api_server") is not None or not platform.target.loopback:
        pytest.skip(f"{Verdict.NOT_APPLICABLE.value}: this target is not a local one without a key")
    return platform


@dataclass(frozen=True)
class SavedSession:
    """A user's session, with a secret in its history and in the name of an artifact."""

    user: User
    session: str
    secret: str

    def state(self) -> Any:
        """Return everything that can be read of the user's sessions."""
        history = texts(self.user.history(self.session))
        return self.user.ids(), history, self.user.artifacts(self.session)


NewUser = Callable[[Platform], User]


@pytest.fixture
def new_user(hosted: Hosted, leftovers: Leftovers) -> NewUser:
    """A function that returns a new user of the hosted reference agents, with an identity's key."""

    def make(platform: Platform) -> User:
        user = User(platform, REFERENCE, new_id())
        for identity in hosted.identities(hosting.AGENTS):
            leftovers.user(REFERENCE, user.id, identity)
        return user

    return make


@pytest.fixture
def saved(hosted: Hosted, new_user: NewUser) -> SavedSession:
    """A session at the gateway, with the key that the control plane shows."""
    platform = hosted.at(hosting.AGENTS)
    if platform.target.api_key is None:
        answer = platform.request("GET", "/list-apps")
        assert _is_refusal(answer), "the gateway does not require a key"
        not_observable("the control plane does not show a key for the runtime")
    return _save(new_user(platform))


def _save(user: User) -> SavedSession:
    """Store a secret in a session of a user."""
    saved = SavedSession(user, user.create(), new_id())
    user.say(saved.session, saved.secret)
    user.order(saved.session, "save", names=[f"{saved.secret}.txt"])
    return saved


@clause("AUT-01")
def test_no_authentication_is_asked_for(local: Platform) -> None:
    """A request without credentials, or with unknown ones, is answered, even when repeated."""
    for headers in ({}, {"Authorization": "Bearer nobody-knows-this"}) * TRIES:
        for path in agent_users.GENERAL:
            answer = local.request("GET", path, surface="api_server", headers=headers)
            sent = "authorization" in answer.request.headers
            assert sent == bool(headers), f"sent {listed(answer.request.headers)}"
            assert answer.is_success, f"GET {path} is answered {answer.status_code}"


@clause("AUT-01", writes=True)
def test_no_endpoint_asks_for_authentication(local: Platform, user: User) -> None:
    """Every endpoint of sessions and runs works without credentials, even when repeated."""
    for session in [user.create() for _ in range(TRIES)]:
        *others, _deletion = agent_users.endpoints(user, session)
        for endpoint in (*others, *agent_users.endpoints(user, session)):
            answer = endpoint.ask(local)
            assert "authorization" not in answer.request.headers, "doublecheck sent a key"
            assert endpoint.works(answer), f"{endpoint.name} is answered {answer.status_code}"
        assert not user.has(session), "the deleted session can still be read"


@clause("AUT-02", reference_app=True, writes=True)
def test_every_endpoint_works_with_each_key(hosted: Hosted, new_user: NewUser) -> None:
    """A gateway offers the endpoints of a local API server to each caller with a valid key."""
    for platform in hosted.identities(hosting.AGENTS):
        user = new_user(platform)
        assert REFERENCE in platform.agents.list_apps(), (
            f"{REFERENCE} is not listed through the gateway"
        )
        assert platform.request("GET", "/version").is_success, (
            "GET /version fails through the gateway"
        )
        named = new_id()
        sessions = sorted([user.create(), user.create(named)])

        assert named in sessions, f"the session has another id than {named}: {listed(sessions)}"
        assert sessions == user.ids(), (
            f"the list of sessions is wrong: {instead(user.ids(), sessions)}"
        )
        for session in sessions:
            for route in ROUTES:
                text = f"{session} by {route}, é 日本語\n"
                assert [text] == texts(user.say(session, text, route=route)), (
                    f"{route} through the gateway does not answer the message {short(text)}"
                )
                assert text in texts(user.history(session)), (
                    f"the history through the gateway has no message {short(text)}"
                )
            user.order(session, "save", names=[f"{session}.txt"])
        assert [[f"{session}.txt"] for session in sessions] == list(
            map(user.artifacts, sessions)
        ), "a session does not list exactly its own artifact"
        user.delete(sessions[0])
        assert sessions[1:] == user.ids(), (
            f"after a deletion, the list of sessions is wrong: {instead(user.ids(), sessions[1:])}"
        )


@clause("AUT-02", reference_app=True, writes=True)
def test_every_endpoint_refuses_strangers(hosted: Hosted, saved: SavedSession) -> None:
    """Every endpoint needs exactly the key, even after a call with it; none can read or write."""
    key, stranger = saved.user.platform.target.api_key, hosted.with_key(hosting.AGENTS, None)
    assert key is not None, "the runtime has no key"
    before = saved.state()

    for wrong, headers in forgeries.wrong_key_headers(key.reveal()).items():
        answers = [
            (endpoint.name, endpoint.ask(stranger, headers))
            for endpoint in agent_users.endpoints(saved.user, saved.session)
        ]
        accepted = {name: it for name, it in answers if not _is_refusal(it)}
        assert {} == accepted, f"accepted with {wrong}"
        assert before == saved.state(), f"a refused request with {wrong} changed the sessions"


@clause("AUT-02", reference_app=True, writes=True)
def test_streams_arrive_in_increments(saved: SavedSession) -> None:
    """Through the gateway, each increment arrives before the next one may be produced."""
    chunks = ["one ", "two ", "ü\n"]

    texts_read = in_step(saved.user, saved.session, chunks)

    assert "".join(chunks) == texts_read.pop() == "".join(texts_read), (
        f"the increments are not the whole text: {short(texts_read)}"
    )


@clause("AUT-03", reference_app=True, writes=True)
def test_an_identity_reaches_nothing_of_another(hosted: Hosted, new_user: NewUser) -> None:
    """An identity cannot read, list, run or delete sessions of another, or see their artifacts.

    Repeating the request or naming the other user does not help, in either direction. Sessions that
    it creates under another identity's user name stay separate.
    """
    first, second = hosted.at(hosting.AGENTS), hosted.as_other(hosting.AGENTS)
    pairs = [(_save(new_user(a)), b) for a, b in ((first, second), (second, first)) * 2]
    before = [saved.state() for saved, _ in pairs]

    for saved, intruder in pairs:
        assert not replace(saved.user, platform=intruder).has(saved.session), (
            "an identity reads the session of another one"
        )
        claims = {"user_id": saved.user.id, "session_id": saved.session}
        for headers in ({}, {}, claims, claims):
            for endpoint in agent_users.endpoints(saved.user, saved.session, HISTORY):
                text = endpoint.ask(intruder, headers).text
                leaked = saved.secret in text
                assert not leaked, f"{endpoint.name} shows an identity what another one said"
                assert endpoint.name != "GET sessions" or saved.session not in text, (
                    "an identity lists the sessions of another one"
                )

    assert before == [saved.state() for saved, _ in pairs], (
        "the sessions changed while other identities tried to use them"
    )


@clause("AUT-03", reference_app=True, writes=True)
def test_identities_at_the_same_time_get_their_own_answers(
    hosted: Hosted, new_user: NewUser
) -> None:
    """Each identity reads and runs its own session, even while another one does the same."""
    platforms = (hosted.at(hosting.AGENTS), hosted.as_other(hosting.AGENTS)) * 3
    sessions = [_save(new_user(platform)) for platform in platforms]
    before = [saved.state() for saved in sessions]
    messages = [f"said: {saved.secret}" for saved in sessions]

    assert before == at_once([saved.state for saved in sessions]), (
        "an identity reads other sessions than its own while another one reads, too"
    )
    runs = [
        functools.partial(saved.user.say, saved.session, message)
        for saved, message in zip(sessions, messages, strict=True)
    ]
    assert [[message] for message in messages] == [texts(events) for events in at_once(runs)], (
        "a run does not answer its own message while other identities run, too"
    )


def _is_refusal(answer: httpx.Response) -> bool:
    """Whether a gateway refuses, with an error or a redirect to a login (U-GATEWAY-AUTH)."""
    return 300 <= answer.status_code < 500
