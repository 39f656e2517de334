from __future__ import annotations

import datetime as dt
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.core.invoke_tool import Address, build
from agentdouble.core.signing import Credentials
from tests.agentdouble.calling import body_of, error_of, http, send, signed

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
    address = Address(double.url, credentials)
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
