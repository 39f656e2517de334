from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from agentdouble import Emulator
from agentdouble.runtimes.authentication import identity
from tests.agentdouble.runtimes.authentication.conftest import Caller
from tests.agentdouble.runtimes.authentication.issuer import Issuer

Bearers = dict[str, str]


@pytest.fixture(scope="module")
def tokens(issuer: Issuer) -> Bearers:
    return {name: issuer.token(name) for name in ("alice", "bob")}


@pytest.fixture(scope="module")
def jwt(double: Emulator) -> Caller:
    """A runtime for bearers of tokens."""
    return Caller(double, "jwt")


@pytest.fixture(scope="module")
def keyed(double: Emulator) -> Caller:
    """A runtime with a key for each of two callers."""
    return Caller(double, "keyed")


def test_anothers_session_is_not_found(jwt: Caller, tokens: Bearers) -> None:
    """It belongs to who used it first, in whatever spelling the header comes."""
    first = jwt.ask("/invoke", tokens["alice"], headers={"session_id": "s1"})
    others = [
        jwt.ask("/invoke", tokens["bob"], headers={name: "s1"})
        for name in ("session_id", "Session-Id", "SESSION.ID")
    ]
    again = jwt.ask("/invoke", tokens["alice"], headers={"session_id": "s1"})
    own = jwt.ask("/invoke", tokens["bob"], headers={"session_id": "s2"})

    assert [200, 404, 404, 404, 200, 200] == [a.status_code for a in (first, *others, again, own)]
    assert {"error": {"message": "Session not found", "type": "NotFound"}} == others[0].json()


def test_a_reset_forgets_whose_the_sessions_were(double: Emulator, keyed: Caller) -> None:
    """They have ended with their runtimes."""
    for key in ("key-of-ann", "key-of-bob"):
        assert 200 == keyed.ask("/invoke", key, headers={"session_id": "s"}).status_code
        double.reset()


def test_runtimes_have_sessions_of_their_own(
    double: Emulator, jwt: Caller, tokens: Bearers
) -> None:
    """One of the same id at another runtime is another one."""
    jwt.seen("/invoke", tokens["alice"], headers={"session_id": "s3"})
    other = Caller(double, "strict").ask("/invoke", tokens["bob"], headers={"session_id": "s3"})

    assert 200 == other.status_code


OF_ALICE = [
    ("GET", "/apps/a/users/alice/sessions", None),
    ("POST", "/apps/a/users/alice/sessions/s1", {}),
    ("GET", "/apps/a/users/alice/sessions/s1/artifacts/x%2Fy", None),
    ("GET", "//apps/a//users/%61lice/", None),
    ("POST", "/run", {"appName": "a", "userId": "alice", "sessionId": "s1"}),
    ("POST", "/run_sse", {"app_name": "a", "user_id": "alice", "session_id": "s1"}),
    ("GET", "/run_live?app_name=a&user_id=alice&session_id=s1", None),
]


@pytest.mark.parametrize(("method", "path", "body"), OF_ALICE, ids=[o[1] for o in OF_ALICE])
def test_the_user_of_an_api_server_is_the_subject(
    jwt: Caller, tokens: Bearers, method: str, path: str, body: dict[str, str] | None
) -> None:
    """For anybody else there is no such session, in the API server's words."""
    mine, others = (
        jwt.ask(path, tokens[name], method=method, json=body) for name in ("alice", "bob")
    )

    assert (200, 404, {"detail": "Session not found"}) == (
        mine.status_code,
        others.status_code,
        others.json(),
    )
    if body:
        assert body == json.loads(mine.json()["body"])


AMBIGUOUS = [
    ("/run", b'{"userId": "bob", "userId": "alice"}', 404),
    ("/run", b'{"userId": "bob", "user_id": "alice"}', 404),
    ("/run", b'{"userId": "bob", "USERID": "alice"}', 404),
    ("/RUN/", b'{"userId": "alice"}', 404),
    ("/run", b'{"userId": ["alice"]}', 400),
    ("/run", b'{"userId": "bob",}', 400),
    ("/run", b"[" * 100_000, 400),
    ("/run", b'{"userId": "%s"}' % (b"a" * 2000), 400),
    ("/apps/a/users/bob/../alice/sessions", b"", 400),
    ("/apps/a/users/bob/%2e%2e/alice/sessions", b"", 400),
    ("/apps/a/users/bob%2F..%2Falice/sessions", b"", 400),
    ("/apps/a%2Fusers/alice/sessions", b"", 400),
    ("/apps%2Fa/users/alice/sessions", b"", 400),
    ("/APPS/a/USERS/alice/sessions", b"", 404),
    ("/debug/trace/session/s1", b"", 404),
]


@pytest.mark.parametrize(("path", "body", "status"), AMBIGUOUS, ids=range(len(AMBIGUOUS)))
def test_what_can_be_read_in_two_ways_is_refused(
    jwt: Caller, tokens: Bearers, path: str, body: bytes, status: int
) -> None:
    """An application may be more lenient than its gateway."""
    assert status == _status(jwt, path, tokens["bob"], body)


def _status(caller: Caller, path: str, bearer: str, body: bytes) -> int:
    """Send a request whose path stays as it is."""
    base = urlsplit(caller.base)
    connection = HTTPConnection(base.netloc, timeout=30)
    try:
        headers = {"Authorization": f"Bearer {bearer}"}
        connection.request("POST", base.path + path, body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_run_that_is_too_large_to_be_read_is_refused(
    jwt: Caller, tokens: Bearers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For it cannot be known whose it is."""
    monkeypatch.setattr(identity, "_LONGEST_RUN", 100)
    answer = jwt.ask("/run", tokens["bob"], json={"userId": "bob", "newMessage": "a" * 100})

    assert (413, {"detail": "The body of a run has at most 100 bytes here."}) == (
        answer.status_code,
        answer.json(),
    )


def test_users_of_an_api_server_belong_to_a_key(keyed: Caller) -> None:
    """A key speaks for many users; another key does not find theirs, by headers either."""
    ann, bob = "key-of-ann", "key-of-bob"
    path = "/apps/a/users/{}/sessions".format
    calls: list[tuple[str, str, dict[str, str]]] = [
        (ann, path("u1"), {}),
        (ann, path("u2"), {}),
        (bob, path("u1"), {}),
        (bob, "/invoke", {"user_id": "u1"}),
        (bob, "/invoke", {"user_id": "u3"}),
        (ann, "/invoke", {"user_id": "u3"}),
        (ann, path("u3"), {}),
    ]
    answers = [keyed.ask(path, key, headers=headers) for key, path, headers in calls]

    assert [200, 200, 404, 404, 200, 200, 404] == [answer.status_code for answer in answers]


def test_an_mcp_session_belongs_to_who_began_it(keyed: Caller) -> None:
    """Another, and one that nobody began, is not found in MCP's words."""
    begin: dict[str, Any] = {"jsonrpc": "2.0", "id": "m1", "method": "initialize"}
    begun = keyed.ask("/mcp", "key-of-ann", json=begin).headers["Mcp-Session-Id"]
    answers = [
        keyed.ask("/mcp", key, json={}, headers={"Mcp-Session-Id": id_})
        for key, id_ in (("key-of-ann", begun), ("key-of-bob", begun), ("key-of-ann", "m2"))
    ]

    assert [200, 404, 404] == [answer.status_code for answer in answers]
    assert {"code": -32600, "message": "Session not found"} == answers[1].json()["error"]


def test_a_request_has_one_session(keyed: Caller) -> None:
    """Two headers could be read in two ways."""
    headers = {"session_id": "s1", "Session-Id": "s2"}

    assert 400 == keyed.ask("/invoke", "key-of-ann", headers=headers).status_code
