from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import jwt
import pytest

from agentdouble import Emulator
from agentdouble.server import guard
from tests.agentdouble.calling import http
from tests.agentdouble.runtimes.authentication.conftest import KEYS, Caller, mirror
from tests.agentdouble.runtimes.authentication.issuer import Issuer

DAY = dt.timedelta(days=1)
FORGED = {
    "X-Ve-TIP-Token": "forged",
    "x_ve_tip_token": "forged",
    "X.VE.Tip-Token": "forged",
    "Connection": "close, X-Ve-TIP-Token",
}


def received(caller: Caller, *args: Any, **more: Any) -> list[str]:
    """Return the tokens that an application finds."""
    headers = caller.echo("/invoke", *args, **more)["headers"]
    return [value for name, value in headers if name.lower() == "x-ve-tip-token"]


def verified(double: Emulator, token: str, audience: str, at: dt.datetime) -> dict[str, Any]:
    """Return the claims of a token, which is checked with what the double publishes."""
    issuer = jwt.decode(token, options={"verify_signature": False})["iss"]
    assert f"{double.url}/_emulator/identity" == issuer
    discovered = http.get(f"{issuer}/.well-known/openid-configuration").json()
    keys = jwt.PyJWKSet.from_dict(http.get(discovered["jwks_uri"]).json())
    claims: dict[str, Any] = jwt.decode(
        token,
        keys[jwt.get_unverified_header(token)["kid"]],
        algorithms=discovered["id_token_signing_alg_values_supported"],
        issuer=discovered["issuer"],
        audience=audience,
        options={
            "require": ["iss", "sub", "aud", "iat", "exp", "jti"],
            "verify_exp": False,
            "verify_iat": False,
        },
    )
    assert claims["iat"] == int(at.timestamp())
    assert claims["exp"] == claims["iat"] + 3600
    return claims


@pytest.fixture
def moved(double: Emulator) -> Iterator[Emulator]:
    """The double at a platform's time that stands still, a day ahead."""
    with double.clock.freeze():
        double.clock.advance(DAY)
        yield double
    double.clock.reset()


def test_an_application_can_verify_who_calls(moved: Emulator, issuer: Issuer) -> None:
    """The token is by the platform's time, and beside the other headers."""
    now, wall = moved.clock.now(), moved.clock.wall()
    bearer = issuer.token("ål\r\n", exp=int((now + DAY).timestamp()), iat=int(wall.timestamp()))
    sent = Caller(moved, "strict").echo("/invoke", bearer)["headers"]
    (token,) = (value for name, value in sent if name.lower() == "x-ve-tip-token")
    claims = verified(moved, token, "strict", now)

    assert ("ål\r\n", "token", "console", issuer.url) == (
        claims["sub"],
        claims["kind"],
        claims["client_id"],
        claims["idp"],
    )
    assert "x-agentdouble-identity-subject" in dict(sent)


def test_a_key_is_a_subject(moved: Emulator) -> None:
    """Each request has a token of its own."""
    caller = Caller(moved, "keyed")
    tokens = [received(caller, KEYS[1]["secret"])[0] for _ in range(2)]
    claims = [verified(moved, token, "keyed", moved.clock.now()) for token in tokens]

    assert [("bob", "key")] * 2 == [(each["sub"], each["kind"]) for each in claims]
    assert claims[0]["jti"] != claims[1]["jti"]


@pytest.mark.parametrize(
    ("runtime", "key", "tokens"), [("keyed", "key-of-ann", 1), ("open", "", 0)]
)
def test_tokens_cannot_be_forged(double: Emulator, runtime: str, key: str, tokens: int) -> None:
    """Nor removed, in any spelling, nor sent to a runtime that authenticates nobody."""
    sent = Caller(double, runtime).echo("/invoke", key, headers=FORGED)["headers"]

    assert "forged" not in str(sent)
    assert tokens == len([name for name, _ in sent if name.lower() == "x-ve-tip-token"])


@pytest.mark.parametrize(
    ("answer", "token", "ours"),
    [
        ("tip-token", True, True),
        ("tip-token-alone", True, False),
        ("x-agentdouble-identity", False, True),
    ],
)
def test_the_headers_can_be_chosen(issuer: Issuer, answer: str, token: bool, ours: bool) -> None:
    """The user of a token is always named."""
    runtime = mirror("jwt", {"discovery_url": issuer.discovery_url})
    with Emulator(runtimes=[runtime], unknowns={"U-IDENTITY-HEADERS": answer}) as double:
        sent = dict(Caller(double, "jwt").echo("/invoke", issuer.token("alice"))["headers"])

    assert "alice" == sent["user_id"]
    assert token == ("x-ve-tip-token" in sent)
    assert ours == ("x-agentdouble-identity-subject" in sent)


def test_the_keys_are_public_and_the_private_one_is_not() -> None:
    """They need no key and no token, unlike the double's other routes."""
    with Emulator(api_key="k" * 16, runtimes=[mirror("keyed", {"keys": KEYS})]) as double:
        paths = (guard.IDENTITY_DISCOVERY, guard.IDENTITY_KEYS, guard.IDENTITY)
        answers = [http.get(double.url + path, headers={"Authorization": ""}) for path in paths]

    assert [200, 200, 401] == [answer.status_code for answer in answers]
    (key,) = answers[1].json()["keys"]
    assert {"kty", "n", "e", "kid", "use", "alg"} == key.keys()


def test_an_application_can_call_another_for_its_caller(double: Emulator) -> None:
    """A runtime can trust the double as an issuer."""
    (token,) = received(Caller(double, "keyed"), "key-of-ann")
    trusting = mirror("trusting", {"discovery_url": double.url + guard.IDENTITY_DISCOVERY})
    with Emulator(runtimes=[trusting]) as another:
        headers = dict(Caller(another, "trusting").echo("/invoke", token)["headers"])

    assert "ann" == headers["x-agentdouble-identity-subject"]
    assert f"{double.url}/_emulator/identity" == headers["x-agentdouble-identity-issuer"]


def test_the_journal_has_no_tokens(double: Emulator) -> None:
    """Neither those that a caller sends, also in the command, nor one that an application returns."""
    headers = {"X-Ve-TIP-Token": "plain-s3cret", "token": "other-s3cret"}
    (token,) = received(Caller(double, "keyed"), "key-of-ann", headers=headers)
    number = http.get(f"{double.url}/_emulator/journal").json()["entries"][-1]["id"]
    entry = http.get(f"{double.url}/_emulator/journal/{number}").json()
    answer = entry.pop("response_body")

    assert "s3cret" not in str(entry)
    assert "-H 'x-ve-tip-token: ***' -H 'token: ***'" in str(entry)
    assert token not in answer
    assert '["x-ve-tip-token","***"]' in answer.lower().replace(" ", "")
