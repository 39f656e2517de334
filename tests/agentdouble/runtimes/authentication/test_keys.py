from __future__ import annotations

import json
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import http
from tests.agentdouble.runtimes.authentication.conftest import Caller, mirror
from tests.agentdouble.runtimes.authentication.issuer import Issuer


@pytest.mark.parametrize(
    ("runtime", "path", "headers"),
    [
        ("keyed", "/a", {"Authorization": "Bearer key-of-bob"}),
        ("queried", "/a?b=1&key=key-of-bob&c", {}),
        ("named", "/a", {"X-Secret-Word": "key-of-bob"}),
    ],
)
def test_key_authenticates_its_caller(
    double: Emulator, runtime: str, path: str, headers: dict[str, str]
) -> None:
    """By name; the gateway does not forward the key to the application."""
    received = Caller(double, runtime).echo(path, headers=headers)
    headers_received = dict(received["headers"])

    assert ("key", "bob") == (
        headers_received["x-agentdouble-identity-kind"],
        headers_received["x-agentdouble-identity-subject"],
    )
    assert "key-of-bob" not in str(received)
    assert ("/a?b=1&c" if runtime == "queried" else "/a") == received["path"]


@pytest.mark.parametrize(
    ("runtime", "path", "headers"),
    [
        ("keyed", "/a", {}),
        ("keyed", "/a", {"Authorization": "Bearer key-of-ann2"}),
        ("keyed", "/a", {"Authorization": "Basic key-of-ann"}),
        ("queried", "/a", {"Authorization": "Bearer key-of-ann"}),
        ("queried", "/a?key=key-of-ann&key=other", {}),
        ("named", "/a", {"X-Secret-Word": "Bearer key-of-ann"}),
        ("jwt", "/a", {"Authorization": "Bearer key-of-ann"}),
    ],
)
def test_requests_without_a_valid_key_are_refused(
    double: Emulator, runtime: str, path: str, headers: dict[str, str]
) -> None:
    """The error says what is required and shows no key."""
    answer = Caller(double, runtime).ask(path, headers=headers)

    assert 401 == answer.status_code
    assert f'realm="{runtime}"' in answer.headers["WWW-Authenticate"]
    assert "key-of-ann" not in answer.text


def test_open_runtime_accepts_anonymous_callers(double: Emulator) -> None:
    """Forged identity headers are dropped as well."""
    forged = {"X-Agentdouble-Identity-Subject": "root", "Authorization": "Bearer own"}
    headers_received = dict(Caller(double, "open").echo(headers=forged)["headers"])

    assert "Bearer own" == headers_received["authorization"]
    assert not [name for name in headers_received if "identity" in name]


def test_runtime_keys_replace_the_double_s_api_key() -> None:
    """Runtimes without keys, and unknown ones, require the double's."""
    tables = [mirror("open"), mirror("keyed", {"keys": ["own"]})]
    with Emulator(runtimes=tables, api_key="the-doubles") as double:
        statuses = [
            Caller(double, name).ask("/a", bearer).status_code
            for name in ("keyed", "open", "nobody")
            for bearer in ("own", "the-doubles")
        ]
        foreign = Caller(double, "keyed").ask(
            "/a", "own", headers={"Origin": "https://evil.example"}
        )

    assert [200, 401, 401, 200, 401, 404] == statuses
    assert 403 == foreign.status_code


def test_journal_shows_no_key(double: Emulator) -> None:
    """Wherever it was sent."""
    http.delete(f"{double.url}/_emulator/journal")
    Caller(double, "queried").echo("/a?key=key-of-ann&b=1")
    Caller(double, "named").echo("/a", headers={"X-Secret-Word": "key-of-ann"})
    journal = http.get(f"{double.url}/_emulator/journal?bodies=true")

    assert ["?key=***&b=1", ""] == [
        entry["url"].partition("/a")[2] for entry in journal.json()["entries"]
    ]
    assert "***" == journal.json()["entries"][1]["request_headers"]["x-secret-word"]
    assert "key-of-ann" not in journal.text


def test_settings_show_no_key(double: Emulator) -> None:
    """Nor do the definitions or the double's list of runtimes."""
    (version,) = double.runtimes.versions("keyed")
    runtimes = http.get(f"{double.url}/_emulator/runtimes").text

    assert "key-of-ann" not in f"{double.settings!r} {version!r} {runtimes}"


Bearers = dict[str, str]


@pytest.fixture(scope="module")
def tokens(issuer: Issuer) -> Bearers:
    return {name: issuer.token(name) for name in ("alice", "bob")}


@pytest.fixture(scope="module")
def jwt(double: Emulator) -> Caller:
    """A runtime that requires tokens."""
    return Caller(double, "jwt")


@pytest.fixture(scope="module")
def keyed(double: Emulator) -> Caller:
    """A runtime with keys for two callers."""
    return Caller(double, "keyed")


def test_another_caller_s_session_is_not_found(jwt: Caller, tokens: Bearers) -> None:
    """A session belongs to its first caller, however the header is spelled."""
    first = jwt.ask("/invoke", tokens["alice"], headers={"session_id": "s1"})
    others = [
        jwt.ask("/invoke", tokens["bob"], headers={name: "s1"})
        for name in ("session_id", "Session-Id", "SESSION.ID")
    ]
    again = jwt.ask("/invoke", tokens["alice"], headers={"session_id": "s1"})
    own = jwt.ask("/invoke", tokens["bob"], headers={"session_id": "s2"})

    assert [200, 404, 404, 404, 200, 200] == [a.status_code for a in (first, *others, again, own)]
    assert {"error": {"message": "Session not found", "type": "NotFound"}} == others[0].json()


OF_ALICE = [
    ("GET", "/apps/a/users/alice/sessions", None),
    ("GET", "//apps/a//users/%61lice/", None),
    ("POST", "/run", {"appName": "a", "userId": "alice", "sessionId": "s1"}),
    ("POST", "/run_sse", {"app_name": "a", "user_id": "alice", "session_id": "s1"}),
]


@pytest.mark.parametrize(("method", "path", "body"), OF_ALICE, ids=[o[1] for o in OF_ALICE])
def test_api_server_user_is_the_token_s_subject(
    jwt: Caller, tokens: Bearers, method: str, path: str, body: dict[str, str] | None
) -> None:
    """Other callers get the API server's error for an unknown session."""
    my_answer, others = (
        jwt.ask(path, tokens[name], method=method, json=body) for name in ("alice", "bob")
    )

    assert (200, 404, {"detail": "Session not found"}) == (
        my_answer.status_code,
        others.status_code,
        others.json(),
    )
    if body:
        assert body == json.loads(my_answer.json()["body"])


AMBIGUOUS = [
    ("/run", b'{"userId": "bob", "user_id": "alice"}', 404),
    ("/RUN/", b'{"userId": "alice"}', 404),
    ("/run", b'{"userId": ["alice"]}', 400),
    ("/run", b"[" * 100_000, 400),
    ("/apps/a/users/bob/%2e%2e/alice/sessions", b"", 400),
    ("/apps%2Fa/users/alice/sessions", b"", 404),
    ("/APPS/a/USERS/alice/sessions", b"", 404),
    ("/debug/trace/session/s1", b"", 404),
]


@pytest.mark.parametrize(("path", "body", "status"), AMBIGUOUS, ids=range(len(AMBIGUOUS)))
def test_ambiguous_requests_are_refused(
    jwt: Caller, tokens: Bearers, path: str, body: bytes, status: int
) -> None:
    """An application may be more lenient than its gateway."""
    base = urlsplit(jwt.base)
    with closing(HTTPConnection(base.netloc, timeout=30)) as connection:
        headers = {"Authorization": f"Bearer {tokens['bob']}"}
        connection.request("POST", base.path + path, body, headers)  # whose path stays as it is
        assert status == connection.getresponse().status


def test_api_server_users_belong_to_a_key(keyed: Caller) -> None:
    """A key stands for many users; another key does not find theirs."""
    ann, bob = "key-of-ann", "key-of-bob"
    path = "/apps/a/users/{}/sessions".format
    calls = [(ann, path("u1")), (ann, path("u2")), (bob, path("u1")), (bob, path("u3"))]

    assert [200, 200, 404, 200] == [keyed.ask(path, key).status_code for key, path in calls]


def test_mcp_session_belongs_to_its_creator(keyed: Caller) -> None:
    """Other callers, and unknown sessions, get MCP's error for an unknown session."""
    begin: dict[str, Any] = {"jsonrpc": "2.0", "id": "m1", "method": "initialize"}
    session = keyed.ask("/mcp", "key-of-ann", json=begin).headers["Mcp-Session-Id"]
    answers = [
        keyed.ask("/mcp", key, json={}, headers={"Mcp-Session-Id": id_})
        for key, id_ in (("key-of-ann", session), ("key-of-bob", session), ("key-of-ann", "m2"))
    ]

    assert [200, 404, 404] == [answer.status_code for answer in answers]
    assert {"code": -32600, "message": "Session not found"} == answers[1].json()["error"]
