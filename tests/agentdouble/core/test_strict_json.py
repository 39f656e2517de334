"""Numbers that JSON does not allow: ``NaN``, ``Infinity`` and those beyond any float."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from agentdouble import A2AApp, Emulator, MCPApp, SimpleApp
from tests.agentdouble.calling import http, send, signed

NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "-1.5E+400"]
CONTENT = {"role": "user", "parts": [{"text": "hi"}]}
MESSAGE = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
SEND = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage"}
RUN = {"appName": "echo", "userId": "ann", "sessionId": "s", "newMessage": CONTENT}
SESSIONS = "/apps/echo/users/ann/sessions"

BODIES = [  # "@" is the number
    ("POST", "/invoke", {"prompt": "@"}, 400),
    ("POST", SESSIONS, {"state": {"x": ["@"]}}, 422),
    ("PATCH", f"{SESSIONS}/s", {"stateDelta": {"x": "@"}}, 422),
    ("POST", "/run", {**RUN, "stateDelta": {"x": "@"}}, 422),
    ("POST", "/run_sse", {**RUN, "stateDelta": {"x": "@"}}, 422),
    ("POST", "/", {**SEND, "params": {"message": MESSAGE, "metadata": {"x": "@"}}}, 200),
    ("POST", "/message:send", {"message": MESSAGE, "metadata": {"x": "@"}}, 400),
    ("POST", "/_emulator/clock", {"advance": "@"}, 400),
    ("PUT", "/_emulator/unknowns", {"U-KERNEL-NAMES": "@"}, 400),
    ("POST", "/_emulator/faults", {"kind": "delay", "operation": "ping", "seconds": "@"}, 400),
]


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    simple = SimpleApp("simple")
    mcp = MCPApp("mcp")

    @simple.entrypoint
    async def entrypoint(payload: Any, headers: Any) -> Any:
        return payload

    @mcp.tool()
    def echo(x: float) -> float:
        return x

    with Emulator(simple, mcp, A2AApp(runner="echo"), pool_size=0) as double:
        yield double


def written(document: Any, number: str) -> bytes:
    return json.dumps(document).replace('"@"', number).encode()


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(
    ("method", "path", "document", "status"), BODIES, ids=lambda value: str(value)[:30]
)
def test_bodies_with_invalid_numbers_are_refused(
    double: Emulator, method: str, path: str, document: Any, status: int, number: str
) -> None:
    """The error has the number and its position."""
    headers = {
        "Content-Type": "application/json",
        "A2A-Version": "1.0",
    }
    answer = http.request(
        method, double.url + path, content=written(document, number), headers=headers
    )

    assert status == answer.status_code, answer.text
    assert re.search(re.escape(number) + " is (not JSON|too large for a number)", answer.text)
    json.loads(answer.text, parse_constant=pytest.fail)


@pytest.mark.parametrize("number", NUMBERS)
def test_actions_refuse_invalid_numbers(double: Emulator, number: str) -> None:
    """In the body of an action and the payload of an operation."""
    payload = {"code": "1", "timeout": "@"}
    body = {"ToolId": double.tool_id, "UserSessionId": "s1", "OperationType": "RunCode"}

    answers = [
        send(signed(double, {**body, "OperationPayload": written(payload, number).decode()})),
        send(signed(double, {**body, "Ttl": float(number), "OperationPayload": "{}"})),
    ]

    for answer in answers:
        error = json.loads(answer.text, parse_constant=pytest.fail)["ResponseMetadata"]["Error"]
        assert 400 == answer.status_code
    assert f"{number} is " in answers[0].text
    assert "Infinity is not JSON" in answers[1].text or "NaN is not JSON" in answers[1].text
    assert "InvalidParameter" == error["Code"]
