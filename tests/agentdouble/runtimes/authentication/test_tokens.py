from __future__ import annotations

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from agentdouble import Emulator
from agentdouble.runtimes.authentication import tokens
from tests.agentdouble.calling import background, eventually, http
from tests.agentdouble.runtimes.asking import shown_runtime
from tests.agentdouble.runtimes.authentication.conftest import Caller, mirror
from tests.agentdouble.runtimes.authentication.issuer import Answer, Issuer, answer

NOW = int(time.time())


def test_token_authenticates_its_caller(double: Emulator, issuer: Issuer) -> None:
    """The application receives the identity, and the token to act for the caller."""
    token = issuer.token("alice")
    headers_received = dict(Caller(double, "strict").echo("/invoke", token)["headers"])

    assert {
        "x-agentdouble-identity-kind": "token",
        "x-agentdouble-identity-subject": "alice",
        "x-agentdouble-identity-issuer": issuer.url,
        "x-agentdouble-identity-client": "console",
        "user_id": "alice",
        "authorization": f"Bearer {token}",
    }.items() <= headers_received.items()


def test_subject_cannot_break_out_of_its_header(double: Emulator, issuer: Issuer) -> None:
    """Non-ASCII characters are percent-encoded."""
    token = issuer.token("ål\r\nX-Evil: 1 %")
    headers_received = dict(Caller(double, "jwt").echo("/invoke", token)["headers"])

    assert "%C3%A5l%0D%0AX-Evil:%201%20%25" == headers_received["x-agentdouble-identity-subject"]
    assert "x-evil" not in headers_received


FORGED = {
    "X-Agentdouble-Identity-Subject": "root",
    "x_agentdouble_identity_kind": "key",
    "X.AGENTDOUBLE.Identity_Role": "admin",
    "X-Agentdouble-Identity": "root",
    "User_Id": "root",
    "user-id": "root",
    "Connection": "close, X-Agentdouble-Identity-Subject, user_id",
}


def test_identity_headers_cannot_be_forged(double: Emulator, issuer: Issuer) -> None:
    """Nor removed on the way, in any spelling that a server might fold."""
    sent = Caller(double, "jwt").echo("/invoke", issuer.token("alice"), headers=FORGED)["headers"]

    assert "root" not in str(sent)
    assert ["alice"] == [value for name, value in sent if name == "user_id"]
    assert [
        ["x-agentdouble-identity-kind", "token"],
        ["x-agentdouble-identity-subject", "alice"],
    ] == [header for header in sent if "identity" in header[0]][:2]


WRONG = {
    "expiring at a text": {"exp": str(NOW + 600)},
    "expiring at a truth value": {"exp": True},
    "expiring at a list": {"exp": [NOW + 600]},
    "expiring never": {"exp": float("inf")},
    "expiring at no number": {"exp": float("nan")},
    "valid from a text": {"nbf": str(NOW - 60)},
    "valid from ever": {"nbf": float("-inf")},
    "issued at a text": {"iat": str(NOW - 60)},
    "of a number": {"sub": 5},
    "for a number": {"aud": 5},
    "expired": {"exp": NOW - 60},
    "endless": {"exp": None},
    "not yet valid": {"nbf": NOW + 3600},
    "another issuer's": {"iss": "https://issuer.example"},
    "for another runtime": {"aud": "another"},
    "of nobody": {"sub": ""},
}


@pytest.mark.parametrize("changed", WRONG.values(), ids=WRONG)
def test_invalid_tokens_are_refused(
    double: Emulator, issuer: Issuer, changed: dict[str, object]
) -> None:
    """With 401 and the reason in the challenge."""
    answer = Caller(double, "strict").ask("/invoke", issuer.token(**changed))

    assert (401, "InvalidToken") == (answer.status_code, answer.json()["error"]["type"])
    assert 'error="invalid_token", error_description="' in answer.headers["WWW-Authenticate"]


def test_token_of_another_client_is_forbidden(double: Emulator, issuer: Issuer) -> None:
    """It is valid, but not for this runtime."""
    caller = Caller(double, "strict")
    answers = [caller.ask("/a", issuer.token(client_id=client)) for client in ("other", None)]

    assert [403, 403] == [answer.status_code for answer in answers]
    assert 'error="insufficient_scope"' in answers[0].headers["WWW-Authenticate"]
    assert 200 == caller.ask("/a", issuer.token(client_id=None, azp="console")).status_code


def _unsigned(issuer: Issuer) -> str:
    return jwt.encode(issuer.claims("alice"), None, "none", {"kid": "one"})


def _by_public_key(issuer: Issuer) -> str:
    """Return a token that uses the public key as its shared secret."""
    secret = issuer.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    head, body = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")
        for part in ({"alg": "HS256", "kid": "one"}, issuer.claims("alice"))
    )
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(
        head + b"." + body, secret
    )
    return b".".join((head, body, base64.urlsafe_b64encode(signature).rstrip(b"="))).decode()


def _by_another_key(issuer: Issuer) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    return jwt.encode(issuer.claims("alice"), key, "ES256", {"kid": "one"})


FORGERIES = {
    "unsigned": _unsigned,
    "signed with the public key": _by_public_key,
    "signed with another key": _by_another_key,
    "garbage": lambda issuer: "garbage",
    "huge": lambda issuer: issuer.token(filler="a" * 20_000),
    "of an unknown key": lambda issuer: issuer.token(kid="two"),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_forged_tokens_are_refused(double: Emulator, issuer: Issuer, forge: object) -> None:
    """Before a runtime starts; the error does not repeat the token."""
    assert callable(forge)
    token = forge(issuer)
    answer = Caller(double, "untouched").ask("/invoke", token)

    assert (401, "InvalidToken") == (answer.status_code, answer.json()["error"]["type"])
    assert token[:40] not in answer.text.replace("token", "")
    assert [] == shown_runtime(double, "untouched")["instances"]


DISCOVERY = "/.well-known/openid-configuration"


def new_caller(double: Emulator, issuer: Issuer, name: str) -> Caller:
    """Return a runtime whose issuer has not been called yet."""
    authorizer = {"discovery_url": f"{issuer.url}/{name}{DISCOVERY}"}
    double.runtimes.create(command=mirror(name)["command"], name=name, authorizer=authorizer)
    return Caller(double, name)


def test_issuer_keys_are_cached_and_refreshed(double: Emulator, issuer: Issuer) -> None:
    """An unknown key triggers a refresh, but not often."""
    caller = new_caller(double, issuer, "changing")
    caller.echo("/a", issuer.token())
    issuer.requests.clear()
    issuer.keys.append(issuer.public("two"))
    statuses = [
        (caller.ask("/a", issuer.token(kid=kid)).status_code, len(issuer.requests))
        for kid in ("one", "two", "three", "four")
    ]
    issuer.keys.pop()

    assert [(200, 0), (200, 1), (401, 1), (401, 1)] == statuses


def _says(document: object) -> Answer:
    return lambda handler: answer(handler, json.dumps(document).encode())


def _redirects(handler: BaseHTTPRequestHandler) -> None:
    answer(handler, b"", 302, Location="/keys")


UNUSABLE: dict[str, tuple[str, Answer, str]] = {
    "html": (DISCOVERY, lambda handler: answer(handler, b"<html>"), "something else than JSON"),
    "empty": (DISCOVERY, _says({}), "an issuer and a jwks_uri"),
    "elsewhere": (DISCOVERY, _says({"issuer": "i", "jwks_uri": "http://e.example/"}), "a jwks_uri"),
    "a redirect": (DISCOVERY, _redirects, "status 302"),
    "huge": ("/keys", lambda handler: answer(handler, b" " * 10_000_000), "more than"),
    "nonsense": ("/keys", _says({"keys": ["one"]}), "no keys that can be used"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_unusable_issuer_refuses_every_token(double: Emulator, issuer: Issuer, name: str) -> None:
    """The answer is a 503 with the reason, and the issuer is tried again after some seconds."""
    path, says, words = UNUSABLE[name]
    caller, token = new_caller(double, issuer, name.replace(" ", "-")), issuer.token()
    issuer.answers[f"/{name.replace(' ', '-')}{path}"] = says
    refused = caller.ask("/a", token)
    issuer.answers.clear()
    issuer.requests.clear()
    again = caller.ask("/a", token)
    was_asked_again = bool(issuer.requests)
    double.clock.advance(seconds=10)

    assert (503, False) == (again.status_code, was_asked_again)
    assert refused.json() == again.json()
    assert (503, "IssuerUnavailable") == (refused.status_code, refused.json()["error"]["type"])
    assert words in refused.json()["error"]["message"]
    assert 200 == caller.ask("/a", token).status_code


def test_callers_wait_for_one_request_to_a_slow_issuer(double: Emulator, issuer: Issuer) -> None:
    """In one thread, however many they are, and with whatever key their tokens name."""
    caller, go = new_caller(double, issuer, "crowded"), threading.Event()
    issuer.answers["/crowded/keys"] = lambda handler: (
        go.wait(30),
        _says({"keys": issuer.keys})(handler),
    )[1]
    issuer.requests.clear()
    tokens_sent = [issuer.token(kid=("one", "forged")[number % 2]) for number in range(40)]
    path = f"/crowd-{id(go)}"
    waiting = [background(lambda token=token: caller.ask(path, token)) for token in tokens_sent]
    eventually(lambda: arrived(double, path), lambda count: count == len(tokens_sent))
    threads = [thread for thread in threading.enumerate() if thread.name == "agentdouble-apart"]
    go.set()
    statuses = [answer.result().status_code for answer in waiting]
    issuer.answers.clear()

    assert 1 == len(threads)
    assert [200, 401] * 20 == statuses
    assert [f"/crowded{DISCOVERY}", "/crowded/keys"] == issuer.requests


def arrived(double: Emulator, path: str) -> int:
    """Return how many requests for a path have arrived, answered or not."""
    entries = http.get(f"{double.url}/_emulator/journal", params={"limit": 1000}).json()["entries"]
    return sum(path in entry["url"] for entry in entries)


def test_slow_issuer_times_out(
    double: Emulator, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The total time is bounded, even if bytes keep arriving."""
    monkeypatch.setattr(tokens, "PATIENCE_S", 0.2)
    go = threading.Event()
    issuer.answers["/slow/keys"] = lambda handler: (go.wait(30), None)[1]
    refused = new_caller(double, issuer, "slow").ask("/a", issuer.token())
    go.set()
    issuer.answers.clear()

    assert 503 == refused.status_code
    assert "did not answer within 0.2 s" in refused.json()["error"]["message"]
