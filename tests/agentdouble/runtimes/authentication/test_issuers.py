from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler

import pytest

from agentdouble import Emulator
from agentdouble.runtimes.authentication import tokens
from tests.agentdouble.runtimes.authentication.conftest import Caller, mirror
from tests.agentdouble.runtimes.authentication.issuer import Answer, Issuer, answer

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
    """The answer is a 503 with the reason, and the issuer is tried again later."""
    path, says, words = UNUSABLE[name]
    caller, token = new_caller(double, issuer, name.replace(" ", "-")), issuer.token()
    issuer.answers[f"/{name.replace(' ', '-')}{path}"] = says
    refused = caller.ask("/a", token)
    issuer.answers.clear()

    assert (503, "IssuerUnavailable") == (refused.status_code, refused.json()["error"]["type"])
    assert words in refused.json()["error"]["message"]
    assert 200 == caller.ask("/a", token).status_code


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
