from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from agentdouble import Emulator
from tests.agentdouble.api_server.wire import (
    JSON,
    NO_ACTIONS,
    create,
    detail,
    generalised,
    new_user,
    read,
    sessions_of,
)
from tests.agentdouble.calling import http

pytestmark = pytest.mark.smoke

EMPTY = ((b"", {}), (b"", JSON), (b"null", JSON), (b"{}", JSON), (b'{"unknown": 1}', JSON))


@contextmanager
def choosing(**chosen: str) -> Iterator[str]:
    """Serve a double with other answers to unknowns; yield its address."""
    unknowns = {id_.replace("_", "-"): name for id_, name in chosen.items()}
    with Emulator(unknowns=unknowns) as double:
        yield double.url


@pytest.mark.parametrize(("content", "headers"), EMPTY)
def test_session_id_is_generated(shared: Emulator, content: bytes, headers: dict[str, str]) -> None:
    """API-02: without a body or with an empty one."""
    user = new_user()
    before = shared.clock.now().timestamp()

    response = http.post(shared.url + sessions_of(user), content=content, headers=headers)
    session = response.json()

    assert (200, "application/json") == (response.status_code, response.headers["content-type"])
    assert {
        "id": str(uuid.UUID(session["id"], version=4)),
        "appName": "echo",
        "userId": user,
        "state": {},
        "events": [],
        "lastUpdateTime": session["lastUpdateTime"],
    } == session
    assert before <= session["lastUpdateTime"] <= shared.clock.now().timestamp()


@pytest.mark.parametrize(
    ("requested", "id_"),
    [("s1", "s1"), (" s1  ", "s1"), ("a/b", "a/b"), ("ü x", "ü x"), ("x" * 5000, "x" * 5000)],
)
@pytest.mark.parametrize("field", ["sessionId", "session_id"])
def test_body_may_contain_the_id(shared: Emulator, field: str, requested: str, id_: str) -> None:
    """Surrounding spaces are stripped."""
    assert id_ == create(shared.url, new_user(), {field: requested})["id"]


@pytest.mark.parametrize("id_", ["s1", "with space", "ünïcödé", "a:b@c", "%"])
def test_path_may_contain_the_id(shared: Emulator, id_: str) -> None:
    """API-03: and the body, if any, is the session's whole state."""
    user = new_user()
    path = f"{shared.url}{sessions_of(user)}/{id_.replace('%', '%25')}"

    created = http.post(path, json={"state": {"a": 1}}).json()

    assert (id_, {"state": {"a": 1}}) == (created["id"], created["state"])
    assert created == http.get(path).json()


@pytest.mark.parametrize("method", ["path", "body"])
def test_duplicate_session_id_is_refused(shared: Emulator, method: str) -> None:
    """U-SESSION-DUPLICATE: 409, and the session is unchanged."""
    user = new_user()
    created = create(shared.url, user, {"sessionId": "s1", "state": {"a": 1}})

    path = shared.url + sessions_of(user)
    response = (
        http.post(f"{path}/s1", json={"b": 1})
        if method == "path"
        else http.post(path, json={"sessionId": "s1", "state": {"app:b": 1}})
    )

    assert (409, "Session already exists: s1") == detail(response)
    assert "U-SESSION-DUPLICATE" in response.headers["x-agentdouble-unknowns"]
    assert created == read(shared.url, user, "s1")


def test_ledger_selects_the_answer_to_duplicates() -> None:
    """400 like older releases, or the existing session."""
    with choosing(U_SESSION_DUPLICATE="400") as url:
        create(url, "ann", {"sessionId": "s1"})
        refused = detail(http.post(url + sessions_of("ann"), json={"sessionId": "s1"}))
    with choosing(U_SESSION_DUPLICATE="existing") as url:
        first = create(url, "ann", {"sessionId": "s1", "state": {"a": 1}})
        again = create(url, "ann", {"sessionId": "s1", "state": {"a": 2}})

    assert (400, "Session already exists: s1") == refused
    assert first == again


def test_state_is_shared_by_prefix(shared: Emulator) -> None:
    """``user:`` across the user's sessions, ``app:`` across all; ``temp:`` is not stored."""
    ann, bob, app = new_user(), new_user(), f"app_{new_user()}"
    state = {"own": None, "user:name": "Ann", "app:limit": {"n": 3}, "temp:x": 1}

    first = create(shared.url, ann, {"state": state}, app)
    second = create(shared.url, ann, {}, app)
    bobs = create(shared.url, bob, {}, app)
    elsewhere = create(shared.url, ann, {}, app + "2")

    assert [
        {"own": None, "app:limit": {"n": 3}, "user:name": "Ann"},
        {"app:limit": {"n": 3}, "user:name": "Ann"},
        {"app:limit": {"n": 3}},
        {},
    ] == [session["state"] for session in (first, second, bobs, elsewhere)]


@pytest.mark.parametrize(
    "value", [2**70, -(2**70), 0.1, 1e300, "\ud800", "\x00", "🦉", [], {"": 1}]
)
def test_state_round_trips(shared: Emulator, value: Any) -> None:
    """Any JSON value."""
    content = json.dumps({"state": {"v": value}, "events": EVENTS[:1]})

    response = http.post(shared.url + sessions_of(new_user()), content=content, headers=JSON)

    assert {"v": value} == response.json()["state"]


EVENTS = [
    {"author": "user", "content": {"role": "user", "parts": [{"text": "hi"}]}},
    {"partial": True, "content": {"parts": [{"text": "incre"}]}},
    {
        "author": "agent",
        "invocation_id": "i1",
        "id": "e1",
        "timestamp": 1795229907.5,
        "unknown": 1,
        "content": {"parts": [{"inlineData": {"data": "+/8=", "mime_type": "x/y"}}]},
    },
]


def test_session_can_be_created_with_events(shared: Emulator) -> None:
    """Missing fields are added, partial events dropped, bytes returned URL-safe."""
    user = new_user()

    session = create(shared.url, user, {"sessionId": "s1", "events": EVENTS})

    rest = {"actions": NO_ACTIONS, "nodeInfo": {"path": ""}}
    assert [
        {
            "content": {"parts": [{"text": "hi"}], "role": "user"},
            "invocationId": "",
            "author": "user",
            **rest,
            "id": "<id>",
            "timestamp": "<time>",
        },
        {
            "content": {"parts": [{"inlineData": {"data": "-_8=", "mimeType": "x/y"}}]},
            "invocationId": "i1",
            "author": "agent",
            **rest,
            "id": "e1",
            "timestamp": "<time>",
        },
    ] == generalised(session["events"])
    assert 1795229907.5 == session["lastUpdateTime"]
    assert session == read(shared.url, user, "s1")


def test_ledger_can_ignore_the_creation_body() -> None:
    """U-SESSION-CREATE: neither id nor state are taken from it."""
    with choosing(U_SESSION_CREATE="ignored") as url:
        first = create(url, "ann", {"sessionId": "s1", "state": {"a": 1}, "options": {"a": 1}})
        second = http.post(f"{url}{sessions_of('ann')}/s2", json={"a": 1}).json()

    assert str(uuid.UUID(first["id"], version=4)) == first["id"]
    assert ({}, "s2", {}) == (first["state"], second["id"], second["state"])


def test_sessions_are_listed_without_events(shared: Emulator) -> None:
    """API-04: a user's own in one application, the least recently updated first, then by id."""
    user = new_user()
    late = {"sessionId": "a", "events": [{**EVENTS[0], "timestamp": 4e9}]}
    same = [
        {"sessionId": id_, "state": {"n": id_}, "events": [{**EVENTS[0], "timestamp": 1e9 + 0.5}]}
        for id_ in ("c", "b")
    ]
    created = [create(shared.url, user, body) for body in (late, *same)]
    create(shared.url, new_user())
    create(shared.url, user, app="other")

    listed = http.get(shared.url + sessions_of(user)).json()

    assert [{**created[index], "events": []} for index in (2, 1, 0)] == listed


def test_ledger_selects_the_session_list_format() -> None:
    """U-SESSION-LIST: an array of ids."""
    with choosing(U_SESSION_LIST="ids") as url:
        create(url, "ann", {"sessionId": "s1"})

        assert ["s1"] == http.get(url + sessions_of("ann")).json()


def test_ledger_selects_the_session_fields() -> None:
    """U-SESSION-FIELDS and U-EVENT-FIELDS: the specified ones alone."""
    content = {"parts": [{"text": "hi"}], "role": "user"}
    with choosing(U_SESSION_FIELDS="id-only", U_EVENT_FIELDS="content-only") as url:
        session = create(url, "ann", {"sessionId": "s1", "events": EVENTS[:1]})

    assert {"id": "s1", "events": [{"content": content}]} == session


@pytest.mark.parametrize("number", [2**53 + 1, 2**63, -(2**63) - 1, 10**30])
def test_large_integers_are_exact(number: int) -> None:
    """Also in events of which the ledger selects the content."""
    part = {"functionCall": {"name": "f", "args": {"n": number}}}
    event = {**EVENTS[0], "content": {"role": "model", "parts": [part]}}
    with choosing(U_EVENT_FIELDS="content-only") as url:
        body = {"sessionId": "s1", "events": [event], "state": {"n": number}}
        session = create(url, "ann", body)

    assert number == session["state"]["n"]
    assert number == session["events"][0]["content"]["parts"][0]["functionCall"]["args"]["n"]


@pytest.mark.parametrize(
    "path", ["/apps/echo/users/ann/sessions/nope", "/apps/x/users/y/sessions/z"]
)
def test_unknown_session_is_not_found(shared: Emulator, path: str) -> None:
    """U-SESSION-UNKNOWN: 404, whichever part of the path is unknown."""
    response = http.get(shared.url + path)

    assert (404, "Session not found") == detail(response)
    assert "U-SESSION-UNKNOWN" == response.headers["x-agentdouble-unknowns"]


def test_another_user_s_session_is_not_found(shared: Emulator) -> None:
    """API-18: the same id is another session for another user."""
    ann, bob = new_user(), new_user()
    create(shared.url, ann, {"sessionId": "s1"})

    assert 404 == http.get(f"{shared.url}{sessions_of(bob)}/s1").status_code
    assert {} == create(shared.url, bob, {"sessionId": "s1"})["state"]


def test_deleted_session_is_gone(shared: Emulator) -> None:
    """API-06: 200 null, also for an unknown one; the id is free, and its events are gone."""
    user = new_user()
    create(shared.url, user, {"sessionId": "s1", "events": EVENTS, "state": {"a": 1}})
    path = f"{shared.url}{sessions_of(user)}/s1"

    answers = [http.delete(path) for _ in range(2)]

    assert [(200, "null")] * 2 == [(answer.status_code, answer.text) for answer in answers]
    assert 404 == http.get(path).status_code
    again = create(shared.url, user, {"sessionId": "s1"})
    assert ([], {}) == (again["events"], again["state"])


def test_ledger_selects_the_answer_to_deletion() -> None:
    """U-SESSION-DELETE: 204 without a body, or 404 for an unknown session."""
    with choosing(U_SESSION_DELETE="204") as url:
        nothing = http.delete(f"{url}{sessions_of('ann')}/s1")
    with choosing(U_SESSION_DELETE="404-unknown") as url:
        create(url, "ann", {"sessionId": "s1"})
        answers = [http.delete(f"{url}{sessions_of('ann')}/s1").status_code for _ in range(2)]

    assert (204, "") == (nothing.status_code, nothing.text)
    assert [200, 404] == answers


def test_state_can_be_changed(shared: Emulator) -> None:
    """PATCH stores an event; null is a value; temporary state is in the answer only."""
    user = new_user()
    create(shared.url, user, {"sessionId": "s1", "state": {"a": 1, "b": 2}})
    delta = {"a": None, "c": [1], "user:n": "Ann", "temp:t": 1}

    response = http.patch(f"{shared.url}{sessions_of(user)}/s1", json={"stateDelta": delta})
    session = response.json()

    remaining = {key: value for key, value in delta.items() if key != "temp:t"}
    assert 200 == response.status_code
    assert {"a": None, "b": 2, "c": [1], "user:n": "Ann", "temp:t": 1} == session["state"]
    assert [
        {
            "invocationId": "p-<id>",
            "author": "user",
            "actions": {**NO_ACTIONS, "stateDelta": remaining},
            "nodeInfo": {"path": ""},
            "id": "<id>",
            "timestamp": "<time>",
        }
    ] == generalised(session["events"])
    assert session["events"][0]["timestamp"] == session["lastUpdateTime"]
    del session["state"]["temp:t"]
    assert session == read(shared.url, user, "s1")


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("PUT", "/apps/a/users/u/sessions/s", 405, "GET"),
        ("HEAD", "/apps/a/users/u/sessions/s", 405, "GET"),
        ("DELETE", "/apps/a/users/u/sessions", 405, "GET"),
        ("POST", "/version", 405, "GET"),
        ("GET", "/apps", 404, None),
        ("GET", "/apps/echo", 404, None),
        ("GET", "/apps/echo/users/u", 404, None),
        ("POST", "/apps/echo/users/u/sessions/s/more", 404, None),
    ],
)
def test_other_paths_and_methods_are_refused(
    shared: Emulator, method: str, path: str, status: int, allow: str | None
) -> None:
    """In JSON; a 405 allows the method of the path's first route."""
    response = http.request(method, shared.url + path)

    assert (status, allow) == (response.status_code, response.headers.get("allow"))
    assert "application/json" == response.headers["content-type"]
    words = {404: "Not Found", 405: "Method Not Allowed"}
    assert method == "HEAD" or {"detail": words[status]} == response.json()


@pytest.mark.parametrize(
    ("method", "path", "missing"),
    [
        ("GET", "/docs", "The page of its routes"),
        ("POST", "/agent-identity/finalize", "The agent identity"),
    ],
)
def test_unspecified_routes_are_refused_by_name(
    shared: Emulator, method: str, path: str, missing: str
) -> None:
    """501, never an invented success."""
    status, message = detail(http.request(method, shared.url + path, json={"sessionId": "s1"}))

    assert 501 == status
    assert message.startswith(f"{missing} of API-server mode is part of the platform")


def test_live_run_is_refused_by_name(shared: Emulator) -> None:
    """Before the WebSocket opens."""
    url = shared.url.replace("http", "ws", 1) + "/run_live?app_name=echo&user_id=u&session_id=s"
    with pytest.raises(InvalidStatus) as refused, connect(url, proxy=None):
        pass

    answer = refused.value.response
    assert 501 == answer.status_code
    assert b"/run_live" in answer.body
