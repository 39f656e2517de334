"""What SignatureDoesNotMatch says, to the writer of a client in any language."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from typing import Any

import pytest

from agentdouble import Emulator, signing
from tests.agentdouble import client_signer
from tests.agentdouble.calling import error_of, http
from tests.agentdouble.client_signer import FOUR

BODY = b'{"ToolId": "t-nobody"}'
QUERY = "Version=2025-10-30&Action=InvokeTool"
SORTED = "Action=InvokeTool&Version=2025-10-30"
NULLS = "0" * 64
HASH = hashlib.sha256(BODY).hexdigest()


def asked(
    double: Emulator,
    text: str | None = None,
    *,
    query: str = QUERY,
    signed: str = FOUR,
    scope: str = "cn-beijing/agentkit",
    made_for: str | None = None,
    said: str | None = None,
    secret: str | None = None,
    **headers: str,
) -> tuple[dict[str, Any], str]:
    """Return the error of a request that signs ``text``, and the text that should be signed.

    ``text`` has places for the headers' values and the hash. The key is made for ``made_for``,
    and the string to sign has ``said``; both are ``scope`` if they are not given.
    """
    x_date = dt.datetime.now(dt.timezone.utc).strftime(signing.DATE_FORMAT)
    scope, made_for, said = (
        f"{x_date[:8]}/{one}/request" for one in (scope, made_for or scope, said or scope)
    )
    sent = {
        "host": double.url.partition("://")[2],
        "x-date": x_date,
        "content-type": "application/json",
        "x-content-sha256": HASH,
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    right = client_signer.canonical(signed, sent, BODY, query="&".join(sorted(query.split("&"))))
    wrong = (
        right if text is None else text.format(**{k.replace("-", "_"): v for k, v in sent.items()})
    )
    to_sign = client_signer.string_to_sign(wrong, x_date, said)
    key = double.credentials.secret_key if secret is None else secret
    signature = client_signer.signature(to_sign, key, made_for)
    sent["authorization"] = client_signer.authorization(
        double.credentials.access_key, signed, signature, scope
    )
    sent_bytes = {name: value.encode("latin-1") for name, value in sent.items()}
    return error_of(http.post(f"{double.url}/?{query}", content=BODY, headers=sent_bytes)), right


def differs(error: dict[str, Any]) -> list[str]:
    assert (401, "SignatureDoesNotMatch") == (error["status"], error["Code"])
    found: list[str] = error["Data"]["Differs"]
    assert all(one in error["Message"] for one in found)
    return found


def test_the_texts_of_the_double_can_be_compared(shared: Emulator) -> None:
    """The canonical request and the string to sign are in the message and in the data."""
    error, right = asked(shared, secret="another")

    to_sign = error["Data"]["StringToSign"]
    assert right == error["Data"]["CanonicalRequest"]
    assert ["HMAC-SHA256", hashlib.sha256(right.encode()).hexdigest()] == [
        to_sign.split("\n")[0],
        to_sign.split("\n")[3],
    ]
    assert error["Message"] == (
        "The request signature we calculated does not match the signature you provided. Check "
        "your Secret Access Key and signing method. Consult the service documentation for "
        f"details. The canonical request of this double is {json.dumps(right)}. "
        f"Its string to sign is {json.dumps(to_sign)}."
    )


def test_a_right_request_is_let_in(shared: Emulator) -> None:
    """Only what does not match is told about."""
    error, _ = asked(shared)

    assert "MissingParameter" == error["Code"]
    assert "Data" not in error


HEADERS = (
    "content-type:{content_type}\nhost:{host}\nx-content-sha256:{x_content_sha256}\n"
    "x-date:{x_date}\n"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"POST\n/\n{QUERY}\n{HEADERS}\n{FOUR}\n{HASH}",
            "the query keeps the order in which it was sent: sort it by name",
        ),
        (
            f"POST\n/\n{SORTED}\n{HEADERS}{FOUR}\n{HASH}",
            "the end of the last header's line is missing: an empty line follows the headers",
        ),
        (
            f"POST\n/\n{SORTED}\n" + HEADERS.replace("host:{host}\n", "") + f"\n{FOUR}\n{HASH}",
            "the header host is left out, but SignedHeaders names it",
        ),
        (
            f"POST\n/\n{SORTED}\n{HEADERS}\n{FOUR}\nUNSIGNED-PAYLOAD",
            "UNSIGNED-PAYLOAD stands for the hash of the body",
        ),
        (
            f"POST\n/\n{SORTED}\n{HEADERS}\n{FOUR}\n{hashlib.sha256(b'').hexdigest()}",
            "the hash is that of an empty body",
        ),
        (f"POST\n/\n{SORTED}\n{HEADERS}\n{FOUR}\n", "the hash of the body is left out"),
    ],
)
def test_a_usual_mistake_is_named(shared: Emulator, text: str, expected: str) -> None:
    """The verifier finds it by signing in the same wrong way."""
    error, _ = asked(shared, text)

    assert [f"The signature matches if {expected}."] == differs(error)


def test_a_hash_that_is_not_that_of_the_body_is_told(shared: Emulator) -> None:
    """The body may have been written anew after it was hashed."""
    error, _ = asked(shared, x_content_sha256=NULLS)

    (told,) = differs(error)
    assert told == (
        f'X-Content-Sha256 is "{NULLS}", but the SHA-256 of the body, 22 bytes as they came, is '
        f"{HASH}."
    )


@pytest.mark.parametrize(
    ("claimed", "made_for", "region", "service"),
    [
        ("agentkit/cn-beijing", "cn-beijing/agentkit", "cn-beijing", "agentkit"),
        ("cn-shanghai/agentkit", "cn-beijing/agentkit", "cn-beijing", "agentkit"),
        ("cn-shanghai/vefaas", "cn-shanghai/agentkit", "cn-shanghai", "agentkit"),
    ],
)
def test_a_key_for_another_scope_is_told(
    shared: Emulator, claimed: str, made_for: str, region: str, service: str
) -> None:
    """Region and service stand in Credential and are part of the key."""
    was_region, was_service = claimed.split("/")
    expected = (
        f"The signature matches if its key is made for the region {region} and the service "
        f"{service}, but Credential has {was_region} and {was_service}."
    )

    for said in (claimed, made_for):
        error, _ = asked(shared, scope=claimed, said=said, made_for=made_for)
        assert [expected] == differs(error)


def test_no_secret_is_told(shared: Emulator) -> None:
    """Neither keys, nor tokens in headers and in the query, nor the right signature."""
    signed = f"cookie;{FOUR};x-api-key;x-my-secret;x-security-token"
    secrets = ["se-cookie", "se-token", "se-api", "se-mine", "se-query"]

    error, right = asked(
        shared,
        secret="another",
        signed=signed,
        query=f"{SORTED}&Authorization=se-query&X-Security-Token=se-query",
        cookie="a=se-cookie",
        x_security_token="se-token",
        x_api_key="se-api",
        x_my_secret="se-mine",
    )

    to_sign = error["Data"]["StringToSign"]
    scope = to_sign.split("\n")[2]
    signature = client_signer.signature(to_sign, shared.credentials.secret_key, scope)
    told = json.dumps(error)
    assert hashlib.sha256(right.encode()).hexdigest() in to_sign
    assert "x-security-token:***\n" in error["Data"]["CanonicalRequest"]
    assert "Authorization=***&" in error["Data"]["CanonicalRequest"]
    assert [] == [
        one
        for one in [*secrets, signature, shared.credentials.secret_key, "another"]
        if one in told
    ]


def test_the_texts_are_bounded(shared: Emulator) -> None:
    """A large request makes no large answer."""
    error, right = asked(shared, secret="another", query=f"{SORTED}&X={'x' * 20_000}")

    shown = error["Data"]["CanonicalRequest"]
    assert shown == f"{right[:2000]}... ({len(right) - 2000} characters more)"
    assert len(json.dumps(error)) < 8000


def test_bytes_that_are_no_text_have_an_answer(shared: Emulator) -> None:
    """In a query as in a header."""
    error, _ = asked(shared, secret="another", query=f"{SORTED}&X=%ff", content_type="\x85 e\xe9")

    assert "&X=%FF\n" in error["Data"]["CanonicalRequest"]
    assert "content-type:\x85 e\xe9\n" in error["Data"]["CanonicalRequest"]
