from __future__ import annotations

import datetime as dt
import json
import threading
from http.server import BaseHTTPRequestHandler

import pytest

from agentdouble import Emulator
from agentdouble.runtimes.authentication import issuers
from tests.agentdouble.calling import background
from tests.agentdouble.runtimes.authentication.conftest import Caller, mirror
from tests.agentdouble.runtimes.authentication.issuer import Answer, Issuer, answer

pytestmark = pytest.mark.libraries

DISCOVERY = "/.well-known/openid-configuration"


def test_keys_are_kept_and_asked_for_again(double: Emulator, issuer: Issuer) -> None:
    """For an unknown key, but not often; and when they are an hour old."""
    caller = Caller(double, "jwt")
    caller.seen("/a", issuer.token())
    issuer.asked.clear()
    issuer.keys.append(issuer.public("two"))
    statuses = []
    for advanced_s, kid in ((0, "one"), (11, "one"), (0, "two"), (0, "three"), (0, "four")):
        double.clock.advance(dt.timedelta(seconds=advanced_s))
        statuses.append((caller.ask("/a", issuer.token(kid=kid)).status_code, len(issuer.asked)))
    double.clock.advance(dt.timedelta(hours=1))
    issuer.keys.pop()
    statuses.append((caller.ask("/a", issuer.token(kid="two")).status_code, len(issuer.asked)))

    assert [(200, 0), (200, 0), (200, 2), (401, 2), (401, 2), (401, 4)] == statuses


def _says(document: object) -> Answer:
    return lambda handler: answer(handler, json.dumps(document).encode())


def _redirects(handler: BaseHTTPRequestHandler) -> None:
    answer(handler, b"", 302, Location="/keys")


def _breaks_off(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "100")
    handler.end_headers()


UNUSABLE = {
    "html": (DISCOVERY, lambda handler: answer(handler, b"<html>"), "is no JSON"),
    "deep": (DISCOVERY, lambda handler: answer(handler, b"[" * 100_000), "no JSON"),
    "a list": (DISCOVERY, _says([]), "no JSON object"),
    "empty": (DISCOVERY, _says({}), "lacks issuer or jwks_uri"),
    "elsewhere": (DISCOVERY, _says({"issuer": "i", "jwks_uri": "http://e.example/"}), "neither"),
    "a redirect": (DISCOVERY, _redirects, "status 302"),
    "broken off": (DISCOVERY, _breaks_off, "cannot be reached"),
    "an error": ("/keys", lambda handler: answer(handler, b"{}", 500), "status 500"),
    "huge": ("/keys", lambda handler: answer(handler, b" " * 10_000_000), "more than"),
    "no keys": ("/keys", _says({"keys": {}}), "no list of keys"),
}


@pytest.mark.parametrize(("path", "says", "words"), UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_issuer_lets_nobody_in(
    double: Emulator, issuer: Issuer, path: str, says: Answer, words: str
) -> None:
    """Nor does it close the door for good: 503, and what was seen."""
    double.clock.advance(dt.timedelta(hours=1))
    issuer.answers[path] = says
    caller, token = Caller(double, "jwt"), issuer.token()
    refused = caller.ask("/a", token)
    del issuer.answers[path]

    assert (503, "IssuerUnavailable") == (refused.status_code, refused.json()["error"]["type"])
    assert words in refused.json()["error"]["message"]
    assert 200 == caller.ask("/a", token).status_code


def test_keys_that_sign_nothing_are_no_keys(double: Emulator, issuer: Issuer) -> None:
    """Shared ones, those for encryption, weak ones and nonsense are passed over."""
    double.clock.advance(dt.timedelta(hours=1))
    issuer.keys[:0] = [
        {"kty": "oct", "k": "AAAA", "kid": "one"},
        issuer.public("one", use="enc"),
        issuer.public("one", alg="ES384"),
        issuer.public("one", x="!"),
        {"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "one"},
        {"kty": "EC", "kid": ["one"]},
        {"kty": "EC"},
        "one",  # type: ignore[list-item]
    ]
    found = Caller(double, "jwt").ask("/a", issuer.token())
    del issuer.keys[:8]

    assert 200 == found.status_code


def test_a_slow_issuer_is_given_up(
    double: Emulator, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while that is bounded, whatever it sends meanwhile."""
    monkeypatch.setattr(issuers, "PATIENCE_S", 0.2)
    double.clock.advance(dt.timedelta(hours=1))
    go = threading.Event()
    issuer.answers["/keys"] = lambda handler: (go.wait(30), None)[1]
    refused = Caller(double, "jwt").ask("/a", issuer.token())
    go.set()
    del issuer.answers["/keys"]

    assert 503 == refused.status_code
    assert "did not answer within 0.2 s" in refused.json()["error"]["message"]


def test_an_issuer_that_is_not_there_lets_nobody_in(issuer: Issuer) -> None:
    """And says which one it is."""
    gone = Issuer()
    gone.close()
    with Emulator(runtimes=[mirror("gone", {"discovery_url": gone.discovery_url})]) as double:
        refused = Caller(double, "gone").ask("/a", issuer.token())

    assert 503 == refused.status_code
    assert f"{gone.discovery_url} cannot be reached" in refused.json()["error"]["message"]


def test_a_double_stops_while_it_asks(issuer: Issuer) -> None:
    """And leaves no task behind."""
    asked, go = threading.Event(), threading.Event()
    issuer.answers["/slow"] = lambda handler: (asked.set(), go.wait(30), None)[2]
    tables = [mirror("slow", {"discovery_url": f"{issuer.url}/slow"})]
    with Emulator(runtimes=tables) as double:
        answered = background(lambda: Caller(double, "slow").ask("/a", issuer.token()))
        assert asked.wait(30)
    go.set()

    assert not isinstance(answered.exception(30), AssertionError)
