"""SignatureDoesNotMatch errors help authors of clients in any language."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from typing import Any

from agentdouble import Emulator
from agentdouble.core import signing
from tests.agentdouble import client_signer
from tests.agentdouble.calling import error_of, http
from tests.agentdouble.client_signer import FOUR

BODY = b'{"ToolId": "t-nobody"}'
QUERY = "Version=2025-10-30&Action=InvokeTool"
SORTED = "Action=InvokeTool&Version=2025-10-30"
NULLS = "0" * 64
HASH = hashlib.sha256(BODY).hexdigest()


def refusal_of(
    double: Emulator,
    text: str | None = None,
    *,
    query: str = QUERY,
    signed: str = FOUR,
    scope: str = "cn-beijing/agentkit",
    made_for: str | None = None,
    claim: str | None = None,
    secret: str | None = None,
    **headers: str,
) -> tuple[dict[str, Any], str]:
    """Return the error of a request that signs ``text``, and the text that should be signed.

    ``text`` has placeholders for the headers' values and the hash. The key is made for
    ``made_for``, and the string to sign has ``said``; both default to ``scope``.
    """
    x_date = dt.datetime.now(dt.timezone.utc).strftime(signing.DATE_FORMAT)
    scope, made_for, claim = (
        f"{x_date[:8]}/{part}/request" for part in (scope, made_for or scope, claim or scope)
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
    to_sign = client_signer.string_to_sign(wrong, x_date, claim)
    key = double.credentials.secret_key if secret is None else secret
    signature = client_signer.signature(to_sign, key, made_for)
    sent["authorization"] = client_signer.authorization(
        double.credentials.access_key, signed, signature, scope
    )
    sent_bytes = {name: value.encode("latin-1") for name, value in sent.items()}
    return error_of(http.post(f"{double.url}/?{query}", content=BODY, headers=sent_bytes)), right


def differs(error: dict[str, Any]) -> list[str]:
    assert (401, "SignatureDoesNotMatch") == (error["status"], error["Code"])
    differing: list[str] = error["Data"]["Differs"]
    assert all(name in error["Message"] for name in differing)
    return differing


def test_error_has_the_texts_to_compare(shared: Emulator) -> None:
    """The message and the data contain the canonical request and the string to sign."""
    error, right = refusal_of(shared, secret="another")

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


def test_hash_of_another_body_is_reported(shared: Emulator) -> None:
    """The body may have been serialized again after hashing."""
    error, _ = refusal_of(shared, x_content_sha256=NULLS)

    (difference,) = differs(error)
    assert difference == (
        f'X-Content-Sha256 is "{NULLS}", but the SHA-256 of the body, 22 bytes as they came, is '
        f"{HASH}."
    )


def test_error_contains_no_secret(shared: Emulator) -> None:
    """No keys, no tokens from headers or the query, no correct signature."""
    signed = f"cookie;{FOUR};x-api-key;x-my-secret;x-security-token"
    secrets = ["se-cookie", "se-token", "se-api", "se-mine", "se-query"]

    error, right = refusal_of(
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
    text = json.dumps(error)
    assert hashlib.sha256(right.encode()).hexdigest() in to_sign
    assert "x-security-token:***\n" in error["Data"]["CanonicalRequest"]
    assert "Authorization=***&" in error["Data"]["CanonicalRequest"]
    assert [] == [
        secret
        for secret in [*secrets, signature, shared.credentials.secret_key, "another"]
        if secret in text
    ]
