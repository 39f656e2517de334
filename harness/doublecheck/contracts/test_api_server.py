"""Checks of API-server mode (API)."""

from __future__ import annotations

import json
import uuid
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.values.agents import AgentSession
from doublecheck.wire import api_server

if TYPE_CHECKING:
    import httpx

REFERENCE = "doublecheck_reference"
HARMLESS = "echo"
JSON = {"Content-Type": "application/json"}
ALONE = {**JSON, "Connection": "close"}  # a server may disconnect after an error


@pytest.fixture
def app(platform: Platform) -> str:
    """The application to run: the reference agent, an echo, or the first in the list."""
    names = platform.list_apps()
    assert names, "The platform lists no application."
    return next((name for name in (REFERENCE, HARMLESS) if name in names), names[0])


@pytest.fixture
def user(leftovers: Leftovers, app: str) -> str:
    """A new user, whose sessions are deleted afterwards, as are those of a second user."""
    user = f"doublecheck-{uuid.uuid4().hex}"
    for one in (user, f"{user}-other"):
        leftovers.user(app, one)
    return user


@pytest.fixture
def session(platform: Platform, app: str, user: str) -> AgentSession:
    """A session of that user."""
    return _named(platform.create_session(app, user_id=user), app, user)


@clause("API-01")
def test_the_applications_are_listed(platform: Platform) -> None:
    """There is at least one, and names are unique."""
    names = platform.list_apps()

    assert names
    assert sorted(set(names)) == sorted(names)


@clause("API-02", writes=True)
def test_a_session_gets_an_id(platform: Platform, app: str, user: str) -> None:
    """Two sessions that are created without an id have different ids."""
    ids = {platform.create_session(app, user_id=user).id for _ in range(2)}

    assert 2 == len(ids - {""}), ids


@clause("API-03", writes=True)
def test_a_session_takes_the_id_of_its_path(platform: Platform, app: str, user: str) -> None:
    """The session has that id, and can be read by it."""
    id_ = uuid.uuid4().hex
    path = api_server.session_path(app, user, id_)

    created = platform.request("POST", path, headers=JSON, content=b"{}")

    assert id_ == api_server.read_session(created).id
    assert id_ == platform.get_session(app, id_, user_id=user).id


@clause("API-04", writes=True)
def test_a_user_s_sessions_are_listed(platform: Platform, app: str, user: str) -> None:
    """All sessions of the user are listed, and none of another user."""
    ids = {platform.create_session(app, user_id=user).id for _ in range(2)}
    platform.create_session(app, user_id=f"{user}-other")

    listed = _ids(platform.request("GET", api_server.sessions_path(app, user)))

    assert ids == set(listed)
    assert 2 == len(listed)


@clause("API-05", writes=True)
def test_a_session_has_its_history(platform: Platform, session: AgentSession) -> None:
    """After a run the history has the user's message and the agent's events."""
    events = platform.run(session, "hello")

    history = _history(platform, session)
    before, replies = history[: -len(events)], history[-len(events) :]
    assert "hello" in [event.text for event in before]
    assert [event.parts for event in events] == [event.parts for event in replies]


@clause("API-06", writes=True)
def test_a_deleted_session_does_not_exist(platform: Platform, session: AgentSession) -> None:
    """A deleted session can be neither read nor run, and is not listed."""
    platform.delete_session(session)

    path = api_server.session_path(session.app_name, session.user_id, session.id)
    sessions = api_server.sessions_path(session.app_name, session.user_id)
    assert platform.request("GET", path).status_code >= 400
    assert session.id not in _ids(platform.request("GET", sessions))


@clause("API-07", writes=True)
def test_all_events_of_the_turn_are_returned(platform: Platform, session: AgentSession) -> None:
    """The list has all events that the history has gained, except the user's message."""
    platform.run(session, "first")
    before = len(_history(platform, session))

    events = platform.run(session, "second")

    gained = _history(platform, session)[before + 1 :]
    assert events
    assert [event.parts for event in gained] == [event.parts for event in events]


@clause("API-08", writes=True)
def test_a_stream_has_one_event_a_line(platform: Platform, session: AgentSession) -> None:
    """Each ``data:`` line is the JSON of an event with content; there is at least one."""
    answer = _run(platform, "/run_sse", api_server.body(session, "hello", {}))

    assert 200 == answer.status_code, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [api_server.read_event(data) for data in _data_lines(answer)]
    assert [event for event in events if event.parts], answer.text
    assert [] == [event for event in events if event.error is not None]


@clause("API-09", writes=True)
def test_increments_come_as_they_are_produced(platform: Platform, session: AgentSession) -> None:
    """Each increment is read before the next may be produced; without streaming there are none."""
    chunks, gate = ["one ", "two ", "three"], uuid.uuid4().hex
    stream = {"do": "stream", "chunks": chunks, "gate": gate, "within_s": wire.READ_WITHIN_S}
    order = json.dumps(stream)
    release = json.dumps({"do": "release", "gate": gate})
    other = _named(
        platform.create_session(session.app_name, user_id=session.user_id),
        session.app_name,
        session.user_id,
    )

    seen = []
    with closing(platform.run_sse(session, order, streaming=True)) as events:
        for event in events:
            seen.append(event.text)
            if len(seen) <= len(chunks):
                platform.run(other, release)
    by_default = list(platform.run_sse(session, "whole"))

    assert [*chunks, "".join(chunks)] == seen
    assert ["whole"] == [event.text for event in by_default]


@clause("API-10", writes=True)
def test_events_have_content(platform: Platform, session: AgentSession) -> None:
    """Content has a role and parts; a reply is the model's and has text."""
    events = platform.run(session, "hello")

    contents = [event.raw["content"] for event in events if event.raw.get("content")]
    assert [] == [one for one in contents if not isinstance(one.get("role"), str)]
    assert [] == [one for one in contents if not isinstance(one.get("parts"), list)]
    assert [event for event in events if event.role == "model" and event.text], events


@clause("API-11", writes=True)
def test_events_carry_increments_calls_and_replies(
    platform: Platform, session: AgentSession
) -> None:
    """All three kinds arrive, in the order in which they happen."""
    order = json.dumps({"do": "tool", "word": "owl"})

    events = list(platform.run_sse(session, order, streaming=True))

    first = next(event for event in events if event.text)
    called = [event for event in events if event.function_calls]
    assert ("o", "owl has 3 letters.") == (first.text, events[-1].text)
    assert [("count_letters", {"word": "owl"})] == [
        (call["name"], call["args"]) for event in called for call in event.function_calls
    ]


@clause("API-12", writes=True)
@pytest.mark.parametrize("field", ["appName", "userId", "sessionId", "newMessage"])
@pytest.mark.parametrize("route", ["/run", "/run_sse"], ids=["list", "stream"])
def test_four_fields_are_needed(
    platform: Platform, session: AgentSession, route: str, field: str
) -> None:
    """A request without one of the four fields ends in an error status or an error event."""
    body = api_server.body(session, "hello", {})
    del body[field]

    answer = _run(platform, route, body)

    assert answer.status_code >= 400 or _last_is_an_error(answer), answer.text


@clause("API-13", writes=True)
def test_artifacts_are_listed(platform: Platform, session: AgentSession) -> None:
    """The answer is a list, also for a session without artifacts."""
    path = api_server.session_path(session.app_name, session.user_id, session.id) + "/artifacts"

    answer = platform.request("GET", path)

    assert 200 == answer.status_code, answer.text
    assert isinstance(wire.json_of(answer), list)


@clause("API-14")
def test_health_answers(platform: Platform) -> None:
    """The answer is a success."""
    assert platform.request("GET", "/health", surface="api_server").is_success


@clause("API-15")
def test_version_answers(platform: Platform) -> None:
    """The answer contains the version."""
    answer = platform.request("GET", "/version")

    assert answer.is_success, answer.text
    assert any(letter.isdigit() for letter in answer.text), answer.text


@clause("API-16")
def test_applications_are_named_by_directories(platform: Platform, user: str) -> None:
    """A name is one segment of a path, and an application that is not listed does not run."""
    unknown = AgentSession("s1", f"no_{uuid.uuid4().hex}", user)

    answer = _run(platform, "/run", api_server.body(unknown, "hello", {}))

    assert [] == [name for name in platform.list_apps() if "/" in name or name in ("", ".", "..")]
    assert 400 <= answer.status_code < 500, answer.text


@clause("API-17", writes=True)
def test_a_second_turn_sees_the_first(platform: Platform, session: AgentSession) -> None:
    """The agent finds the messages of earlier turns."""
    platform.run(session, "remember me")
    order = json.dumps({"do": "history"})

    (answer,) = platform.run(session, order)

    assert ["remember me", order] == json.loads(answer.text)


@clause("API-18", writes=True)
def test_users_sessions_are_separate(platform: Platform, app: str, user: str) -> None:
    """The same session id is another session for another user, who cannot read the first."""
    path = api_server.session_path(app, f"{user}-other", "s1")
    session = _named(platform.create_session(app, user_id=user, session_id="s1"), app, user)

    missing = platform.request("GET", path)
    platform.create_session(app, user_id=f"{user}-other", session_id="s1")
    platform.run(session, "a secret")

    assert missing.status_code >= 400, missing.text
    assert "a secret" not in platform.request("GET", path).text


def _named(session: AgentSession, app: str, user: str) -> AgentSession:
    """Return a session whose application and user are known, because an answer may omit them."""
    return AgentSession(session.id, app, user, session.state, session.events)


def _history(platform: Platform, session: AgentSession) -> Any:
    return platform.get_session(session.app_name, session.id, user_id=session.user_id).events


def _ids(answer: httpx.Response) -> list[str]:
    """Return the ids of a list of sessions, in any of the list's formats (U-SESSION-LIST)."""
    assert 200 == answer.status_code, answer.text
    return [one["id"] if isinstance(one, dict) else one for one in wire.json_of(answer)]


def _run(platform: Platform, route: str, body: Any) -> httpx.Response:
    return platform.request("POST", route, headers=ALONE, content=json.dumps(body).encode())


def _data_lines(answer: httpx.Response) -> list[str]:
    lines = [line for line in answer.text.splitlines() if line]
    assert [] == [line for line in lines if not line.startswith("data:")], answer.text
    return [line.removeprefix("data:").strip() for line in lines]


def _last_is_an_error(answer: httpx.Response) -> bool:
    return api_server.read_event(_data_lines(answer)[-1]).error is not None
