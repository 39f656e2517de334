"""Who may sign requests, and errors that help authors of clients in any language."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.core import signing
from agentdouble.core.invoke_tool import ToolAddress, build
from agentdouble.core.signing import Credentials
from tests.agentdouble import client_signer
from tests.agentdouble.calling import body_of, error_of, http, send, signed
from tests.agentdouble.client_signer import FOUR

VERSION = "2025-10-30"
FULL = {"access_key": "AKLTfull", "secret_key": "full-secret"}
LESS = {"access_key": "AKLTless", "secret_key": "less-secret", "full_access": False}
TEMPORARY = {"access_key": "AKTP", "secret_key": "tmp-secret", "session_token": "tmp-token"}


@pytest.fixture(scope="module")
def keyed() -> Iterator[Emulator]:
    """A double with three additional key pairs."""
    with Emulator(keys=[FULL, LESS, TEMPORARY]) as double:
        yield double


def refusal_of(
    double: Emulator, credentials: Credentials, action: str = "InvokeTool", **body: Any
) -> dict[str, Any]:
    """Return how a request for an unknown tool is refused."""
    content = {**body_of(double, "1"), "ToolId": "t-nobody", **body}
    address = ToolAddress(double.url, credentials)
    when = dt.datetime.now(dt.timezone.utc)
    return error_of(send(build(content, address, when, action=action)))


def test_key_without_full_access_permission_is_refused(keyed: Emulator) -> None:
    """CTL-07: a valid signature is not enough, whatever the action."""
    limited = Credentials("AKLTless", "less-secret")

    assert {
        "status": 403,
        "Code": "AccessDenied",
        "CodeN": 100013,
        "Message": "User is not authorized to perform: agentkit:InvokeTool on resource: *. "
        "The key AKLTless lacks the full-access permission.",
    } == refusal_of(keyed, limited)
    assert ["AccessDenied"] * 2 == [
        refusal_of(keyed, limited, action)["Code"] for action in ("GetTool", "NoSuchAction")
    ]


@pytest.mark.parametrize(
    "credentials",
    [Credentials("AKLTfull", "full-secret"), Credentials("AKTP", "tmp-secret", "tmp-token"), None],
    ids=["full access", "temporary", "the double's own"],
)
def test_every_key_with_the_permission_may_call(
    keyed: Emulator, credentials: Credentials | None
) -> None:
    assert "InvalidResource.NotFound" == refusal_of(keyed, credentials or keyed.credentials)["Code"]


@pytest.mark.parametrize(
    ("token", "reason"),
    [(None, "is missing"), ("another", "is not that of these temporary credentials")],
)
def test_temporary_credentials_need_their_token(
    keyed: Emulator, token: str | None, reason: str
) -> None:
    """The error says whether the token is missing or wrong."""
    credentials = Credentials("AKTP", "tmp-secret", token)

    message = f"The session token in the header X-Security-Token {reason}."
    assert {"status": 401, "Code": "InvalidSecurityToken", "Message": message} == refusal_of(
        keyed, credentials
    )


def test_secrets_are_neither_shown_nor_journalled(keyed: Emulator) -> None:
    """Neither the settings' repr nor the journal contains a secret or a token."""
    refusal_of(keyed, Credentials("AKTP", "tmp-secret", "tmp-token"))
    text = repr(keyed.settings) + str(keyed.settings) + keyed.settings.model_dump_json()
    written = json.dumps([entry.to_dict() for entry in keyed.journal.entries()])

    secrets = ["full-secret", "less-secret", "tmp-secret", "tmp-token"]
    assert [] == [secret for secret in secrets if secret in text + written]


def raw(double: Emulator, head: bytes, body: bytes = b"{}") -> tuple[int, dict[str, Any]]:
    """Send bytes and return the status and the JSON of the answer."""
    port = int(double.url.rpartition(":")[2])
    rest = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
    with socket.create_connection(("127.0.0.1", port)) as end:
        end.sendall(head + rest + body)
        answer = b"".join(iter(lambda: end.recv(65536), b""))
    return int(answer.split(b" ", 2)[1]), json.loads(answer.partition(b"\r\n\r\n")[2])


LINE = f"POST /?Action=InvokeTool&Version={VERSION} HTTP/1.1\r\n".encode()


def lines(double: Emulator, **changes: bytes) -> list[bytes]:
    headers = signed(double, {}).headers
    encoded = {n: v.encode() for n, v in headers.items()} | changes
    return [b"%s: %s\r\n" % (name.encode(), value) for name, value in encoded.items()]


def test_duplicate_headers_are_refused(shared: Emulator) -> None:
    """With duplicates, one could be verified and the other used."""
    header_lines = lines(shared)
    again = next(line for line in header_lines if line.startswith(b"Authorization"))

    status, answer = raw(shared, LINE + b"".join([*header_lines, again]))

    error = answer["ResponseMetadata"]["Error"]
    assert (401, "SignatureDoesNotMatch") == (status, error["Code"])
    assert error["Message"].startswith("The header authorization stands in the request more")


@pytest.mark.parametrize(
    ("query", "status", "code", "message"),
    [
        ("Action=InvokeTool", 400, "MissingParameter", "The request is missing Version parameter."),
        (
            f"Action=InvokeTool&Action=GetTool&Version={VERSION}",
            400,
            "InvalidParameter",
            "The parameter Action is invalid: it occurs 2 times in the query.",
        ),
    ],
)
def test_query_without_a_single_action_is_refused(
    query: str, status: int, code: str, message: str
) -> None:
    """The error says what is wrong with Action or Version."""
    with Emulator(check_signatures=False) as double:
        error = error_of(http.post(f"{double.url}/?{query}", content=b"{}"))

    assert (status, code, message) == (error["status"], error["Code"], error["Message"])


BODY = b'{"ToolId": "t-nobody"}'
QUERY = "Version=2025-10-30&Action=InvokeTool"
SORTED = "Action=InvokeTool&Version=2025-10-30"
NULLS = "0" * 64
HASH = hashlib.sha256(BODY).hexdigest()


def mismatch_of(
    double: Emulator,
    *,
    query: str = QUERY,
    signed: str = FOUR,
    secret: str | None = None,
    **headers: str,
) -> tuple[dict[str, Any], str]:
    """Return the error of a request, and the text that should be signed."""
    x_date = dt.datetime.now(dt.timezone.utc).strftime(signing.DATE_FORMAT)
    scope = f"{x_date[:8]}/cn-beijing/agentkit/request"
    sent = {
        "host": double.url.partition("://")[2],
        "x-date": x_date,
        "content-type": "application/json",
        "x-content-sha256": HASH,
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    right = client_signer.canonical(signed, sent, BODY, query="&".join(sorted(query.split("&"))))
    to_sign = client_signer.string_to_sign(right, x_date, scope)
    key = double.credentials.secret_key if secret is None else secret
    signature = client_signer.signature(to_sign, key, scope)
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
    error, right = mismatch_of(shared, secret="another")

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
        f"Its string to sign is {json.dumps(to_sign)}. If yours are the same, the secret key "
        "differs, or the signing key made from it."
    )


def test_hash_of_another_body_is_reported(shared: Emulator) -> None:
    """The body may have been serialized again after hashing."""
    error, _ = mismatch_of(shared, x_content_sha256=NULLS)

    (difference,) = differs(error)
    assert difference == (
        f'X-Content-Sha256 is "{NULLS}", but the SHA-256 of the body, 22 bytes as they came, is '
        f"{HASH}."
    )


def test_error_contains_no_secret(shared: Emulator) -> None:
    """No keys, no tokens from headers or the query, no correct signature."""
    signed = f"cookie;{FOUR};x-api-key;x-my-secret;x-security-token"
    secrets = ["se-cookie", "se-token", "se-api", "se-mine", "se-query"]

    error, right = mismatch_of(
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
