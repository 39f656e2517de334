"""Bodies that the SDK's REST routes cannot read: each is the caller's mistake, told as one."""

from __future__ import annotations

from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import http

PATHS = [
    ("/message:send", "1.0"),
    ("/message:stream", "1.0"),
]
BODIES = {
    "utf-16": "{}".encode("utf-16"),
    "utf-32": "{}".encode("utf-32"),
    "latin-1": '{"message": "é"}'.encode("latin-1"),
    "byte order mark": "{}".encode("utf-8-sig"),
    "array": b"[]",
    "number": b"1",
    "null": b"null",
    "text": b'"text"',
    "deep": b"[" * 100_000,
    "large number": b'{"message": ' + b"9" * 5000 + b"}",
    "a name with half of a character": b'{"\\uD800": 1}',
    "a text with half of a character": b'{"message": {"messageId": "\\udfff"}}',
}
JSON_RPC = b'{"jsonrpc": "2.0", "id": 1, "method": "%s", "params": %s}'


def post(double: Emulator, path: str, version: str, body: bytes) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json", "A2A-Version": version}
    answer = http.post(double.url + path, content=body, headers=headers)
    return answer.status_code, answer.json()["error"]["code"]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize(("path", "version"), PATHS, ids=str)
def test_a_body_that_is_no_object_in_utf_8_is_refused(
    shared: Emulator, path: str, version: str, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """400 in the shape of the binding, and no traceback in the log."""
    assert (400, 400) == post(shared, path, version, body)
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("params", [body for body in BODIES.values() if b"\\u" in body], ids=str)
@pytest.mark.parametrize(
    ("method", "version"), [(b"SendMessage", "1.0"), (b"message/send", "0.3")], ids=str
)
def test_half_of_a_character_in_json_rpc_is_refused(
    shared: Emulator, method: bytes, version: str, params: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """JSON can escape one; protobuf cannot have it."""
    answer = http.post(
        f"{shared.url}/", content=JSON_RPC % (method, params), headers={"A2A-Version": version}
    )

    assert (-32600, True) == (
        answer.json()["error"]["code"],
        "half of a character" in answer.json()["error"]["message"],
    )
    assert not [record for record in caplog.records if record.exc_info]
