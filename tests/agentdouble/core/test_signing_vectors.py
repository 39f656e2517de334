"""The vectors in ``signing_vectors.json``, checked with the verifier and a double."""

from __future__ import annotations

import datetime as dt
import json
import re
import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

import freezegun
import pytest

from agentdouble import Emulator
from agentdouble.core import signing
from agentdouble.core.canonical_request import read_query
from agentdouble.core.signing import Credentials, SignableRequest
from agentdouble.errors import SignatureError
from tests.agentdouble import client_signer

VECTORS = json.loads(
    (resources.files("agentdouble.core") / "signing_vectors.json").read_text("utf-8")
)
KNOWN = {entry["access_key"]: Credentials(**entry) for entry in VECTORS["credentials"]}
REFUSALS = {vector["code"] for vector in VECTORS["refused"]}


def each_vector(group: str) -> Any:
    return pytest.mark.parametrize("vector", VECTORS[group], ids=lambda vector: vector["name"])


def parse(raw: bytes) -> SignableRequest:
    """Parse an HTTP/1.1 request as an ASGI server would."""
    head, _, body = raw.partition(b"\r\n\r\n")
    line, *rest = head.split(b"\r\n")
    method, target, _ = line.split(b" ")
    path, _, query = target.partition(b"?")
    pairs = [tuple(part.decode("latin-1") for part in line.split(b":", 1)) for line in rest]
    names = [name.lower() for name, _ in pairs]
    return SignableRequest(
        method.decode(),
        re.sub(rb"%(..)", lambda m: bytes.fromhex(m[1].decode()), path).decode("utf-8"),
        read_query(query),
        dict(zip(names, (value.strip(" \t") for _, value in pairs), strict=True)),
        body,
        frozenset(name for name, times in Counter(names).items() if times > 1),
    )


def when(vector: dict[str, Any]) -> dt.datetime:
    return dt.datetime.strptime(vector["at"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=dt.timezone.utc)


def outcome(
    vector: dict[str, Any], request: SignableRequest, credentials: dict[str, Credentials]
) -> str:
    try:
        return signing.verify(request, credentials_of=credentials.get, wall=when(vector)).access_key
    except SignatureError as error:
        return error.code


@each_vector("accepted")
def test_valid_requests_are_accepted(vector: dict[str, Any]) -> None:
    """Each real client's variant verifies and identifies its owner."""
    request = parse(vector["raw"].encode("latin-1"))

    assert outcome(vector, request, KNOWN) in KNOWN


@each_vector("refused")
def test_invalid_requests_are_refused(vector: dict[str, Any]) -> None:
    """Each gets the platform's error code."""
    request = parse(vector["raw"].encode("latin-1"))

    assert vector["code"] == outcome(vector, request, KNOWN)


@each_vector("accepted")
def test_the_steps_of_a_vector_lead_to_its_signature(vector: dict[str, Any]) -> None:
    """Other implementations can follow them without our code."""
    match = re.search(
        r"Credential=(?P<key>[^/]+)/(?P<scope>[^,]+), .*Signature=(?P<signature>\w+)", vector["raw"]
    )
    assert match is not None
    scope, secret = match["scope"], KNOWN[match["key"]].secret_key
    x_date = parse(vector["raw"].encode("latin-1")).headers["x-date"]

    assert vector["string_to_sign"] == client_signer.string_to_sign(
        vector["canonical"], x_date, scope
    )
    assert match["signature"] == client_signer.signature(vector["string_to_sign"], secret, scope)


def spans(raw: bytes) -> Iterator[range]:
    """Yield the positions of the signed bytes and of the signature."""
    head = raw.index(b"\r\n\r\n")
    yield range(raw.index(b" HTTP/1.1"))
    yield range(head + 4, len(raw))
    signed = re.search(rb"SignedHeaders=([^,]+)", raw)
    assert signed is not None
    yield range(*signed.span(1))
    for name in signed[1].split(b";"):
        value = re.search(rb"(?i)\r\n" + name + rb":[ \t]*([^\r]*?)[ \t]*\r\n", raw)
        assert value is not None, name
        yield range(*value.span(1))
    for part in (rb"Credential=([^,]+)", rb"Signature=([0-9a-f]+)"):
        match = re.search(part, raw)
        assert match is not None
        yield range(*match.span(1))


@pytest.mark.slow
@each_vector("accepted")
def test_changing_any_signed_byte_is_refused(vector: dict[str, Any]) -> None:
    """This covers method, path, query, signed headers, body and credential."""
    raw = vector["raw"].encode("latin-1")
    changed = [
        raw[:index] + bytes([raw[index] ^ 1]) + raw[index + 1 :]
        for span in spans(raw)
        for index in span
    ]

    accepted = [variant for variant in changed if _is_accepted(vector, variant)]

    assert len(changed) > 200
    assert [] == accepted


def _is_accepted(vector: dict[str, Any], raw: bytes) -> bool:
    try:
        request = parse(raw)
    except (ValueError, UnicodeDecodeError):  # what no server would hand over
        return False
    return outcome(vector, request, KNOWN) in KNOWN


@each_vector("accepted")
def test_changing_any_byte_of_a_secret_is_refused(vector: dict[str, Any]) -> None:
    request = parse(vector["raw"].encode("latin-1"))
    key = KNOWN[outcome(vector, request, KNOWN)]
    near = [
        replace(key, secret_key=secret[:i] + chr(ord(secret[i]) ^ 1) + secret[i + 1 :])
        for secret in [key.secret_key]
        for i in range(len(secret))
    ]

    codes = {outcome(vector, request, {key.access_key: variant}) for variant in near}

    assert {"SignatureDoesNotMatch"} == codes


@cache
def settings() -> dict[str, Any]:
    first, *further = VECTORS["credentials"]
    return {
        "access_key": first["access_key"],
        "secret_key": first["secret_key"],
        "keys": further,
        "tool_id": "t-other",  # so that what is taken is refused afterwards, and runs nothing
    }


@pytest.fixture(scope="module")
def served() -> Iterator[Emulator]:
    with Emulator(**settings()) as double:
        yield double


def code_of(double: Emulator, vector: dict[str, Any]) -> str:
    """Send a vector's bytes to a double at the vector's time and return the error code."""
    port = int(double.url.rpartition(":")[2])
    with freezegun.freeze_time(vector["at"]), socket.create_connection(("127.0.0.1", port)) as end:
        end.sendall(re.sub(rb"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", _raw(vector), count=1))
        answer = b"".join(iter(lambda: end.recv(65536), b""))
    body = json.loads(answer.partition(b"\r\n\r\n")[2])
    return str(body["ResponseMetadata"]["Error"]["Code"])


def _raw(vector: dict[str, Any]) -> bytes:
    raw: bytes = vector["raw"].encode("latin-1")
    return re.sub(rb"(?i)\r\nconnection: keep-alive", b"", raw)


@pytest.mark.parametrize(
    "vector",
    [vector for vector in VECTORS["accepted"] if vector["raw"].startswith("POST /?")],
    ids=lambda vector: vector["name"],
)
def test_a_double_verifies_the_bytes_of_a_valid_request(
    served: Emulator, vector: dict[str, Any]
) -> None:
    """The signature passes, and a later rule refuses the request."""
    assert code_of(served, vector) not in REFUSALS


@each_vector("refused")
def test_a_double_refuses_the_bytes_of_an_invalid_request(
    served: Emulator, vector: dict[str, Any]
) -> None:
    """The answers over a socket are the same."""
    assert vector["code"] == code_of(served, vector)
