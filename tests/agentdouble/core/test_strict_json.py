"""What other programs cannot read: numbers that are not finite, and halves of characters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest

from agentdouble import A2AApp, Emulator, MCPApp, SimpleApp
from agentdouble.core import strict_json
from agentdouble.core.environment import model_key
from tests.agentdouble.calling import TOKEN, http, send, signed

HALF = "\ud800"
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

    with Emulator(simple, mcp, A2AApp(runner="echo"), pool_size=0, token=TOKEN) as double:
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


TOOL = {"Name": "a-tool", "ToolType": "CodeEnv"}
NAMED = {"appName": HALF, "userId": HALF, "sessionId": HALF, "filename": HALF}
REFUSED_AS_IT_IS = "\\\\ud800 is half of a character (a lone surrogate)"  # in JSON
OWN_BODIES = [
    ("POST", "/_emulator/model", {"text": HALF}),
    ("POST", "/_emulator/model", {"models": [HALF]}),
    ("POST", "/_emulator/model/recording", {"exchanges": [{"path": HALF}]}),
    ("POST", "/_emulator/faults", {"kind": "fail", "operation": HALF}),
    ("POST", "/_emulator/clock", {HALF: 1}),
    ("PUT", "/_emulator/unknowns", {HALF: "x"}),
    ("POST", "/model/v1/responses", {"model": "m", "input": HALF}),
    ("POST", "/model/v1/chat/completions", {"messages": [{"role": "user", "content": HALF}]}),
    ("POST", "/model/v1beta/models/m:generateContent", {"contents": [{"role": HALF}]}),
    ("POST", "/jupyter/api/kernels", {"name": HALF}),
    ("POST", "/message:send", {"message": MESSAGE, "metadata": {HALF: 1}}),
]


@pytest.mark.parametrize(("method", "path", "document"), OWN_BODIES, ids=lambda value: str(value))
def test_halves_of_characters_are_refused(
    double: Emulator, method: str, path: str, document: Any
) -> None:
    """The error says which and where, also if the body is well-formed otherwise."""
    prefix = path.split("/")[1]
    headers = {"Authorization": f"Bearer {model_key(TOKEN) if prefix == 'model' else TOKEN}"}

    answer = http.request(method, double.url + path, content=json.dumps(document), headers=headers)

    assert 400 == answer.status_code, answer.text
    assert REFUSED_AS_IT_IS in answer.text


@pytest.mark.parametrize(
    "document",
    [{HALF: 1}, {**TOOL, "Description": HALF}, {**TOOL, "Tags": [{"Key": "k", "Value": HALF}]}],
)
def test_no_surface_stores_half_of_a_character(double: Emulator, document: Any) -> None:
    """No request of the API description that has one fails in the double, and no list afterwards."""
    paths = http.get(f"{double.url}/openapi.json").json()["paths"]
    body = {**NAMED, **document}
    answers: dict[str, int] = {}
    for path, operations in paths.items():
        for method in {"post", "put", "patch"} & operations.keys():
            if "Action=" in path:
                answer = send(signed(double, body, action=parse_qs(path)["/?Action"][0]))
            else:
                sent = {
                    "content": json.dumps(body),
                    "headers": {"Content-Type": "application/json"},
                }
                answer = http.request(
                    method, f"{double.url}{re.sub('[{].*?[}]', 'x', path)}", **sent
                )
            answers[f"{method} {path}"] = answer.status_code
    lists = [action for path in paths for action in re.findall(r"Action=(List\w+)", path)]

    assert len(answers) > 60
    # JSON-RPC has its own error, and a payload and a new session's state come back as they were
    succeeded = {at for at, status in answers.items() if status < 400}
    state = "post /apps/{app}/users/{user}/sessions/{session}"
    assert {"post /", "post /invoke"} == succeeded - {state}
    assert [] == [at for at, status in answers.items() if status >= 500 and status != 501]
    assert all(send(signed(double, {}, action=action)).status_code < 500 for action in lists)


@pytest.mark.parametrize(
    ("path", "document", "name"),
    [
        ("/run", RUN, "userId"),
        ("/run", RUN, "sessionId"),
        ("/run_sse", RUN, "sessionId"),
        (SESSIONS, {}, "sessionId"),
        (f"{SESSIONS}/s/artifacts", {"artifact": {"text": "x"}}, "filename"),
        ("/apps/echo/users/ann/memory", {}, "sessionId"),
    ],
)
def test_names_with_half_of_a_character_are_refused(
    double: Emulator, path: str, document: Any, name: str
) -> None:
    """No path could name such a session or artifact."""
    method = "PATCH" if path.endswith("memory") else "POST"

    answer = http.request(
        method,
        double.url + path,
        content=json.dumps({**document, name: f"x{HALF}"}),
        headers={"Content-Type": "application/json"},
    )

    assert (422, ["body", name]) == (answer.status_code, answer.json()["detail"][0]["loc"])


@pytest.mark.parametrize(
    "raw",
    [b"\xed\xa0\x80", b"\xff", "\ud800".encode("utf-16-le", "surrogatepass")],
    ids=["as three bytes", "no UTF-8", "UTF-16"],
)
@pytest.mark.parametrize("path", ["/invoke", SESSIONS, "/run", "/", "/_emulator/model"])
def test_bodies_that_are_not_text_are_refused(double: Emulator, path: str, raw: bytes) -> None:
    """Also where the value would come back as it was."""
    start, end = '{"text": "', '"}'
    encoding = "utf-16-le" if len(raw) == 2 else "utf-8"
    content = start.encode(encoding) + raw + end.encode(encoding)

    answer = http.post(
        double.url + path, content=content, headers={"Content-Type": "application/json"}
    )

    assert 400 == answer.status_code or "Parse error" in answer.text or -32700 == code_of(answer)


def code_of(answer: httpx.Response) -> int:
    code: int = answer.json()["error"]["code"]
    return code


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\uD83D\uDE00\n"', "\U0001f600\n"),
        (r'"\\ud800"', r"\ud800"),
        (r'"\\\\ud800 \" \\"', '\\\\ud800 " \\'),
    ],
)
def test_whole_characters_are_accepted(text: str, value: str) -> None:
    """Escaped pairs, and a backslash that only looks like the begin of an escape."""
    assert value == strict_json.loads(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (r'"\ud83d"', 1),
        (r'"\udE00\ud83d"', 1),
        (r'"\ud83d\ude00\ude00"', 13),
        (r'{"\\\ud800": 1}', 4),
        (r'"\ud83d\\ude00"', 1),
    ],
)
def test_halves_are_found_at_their_place(text: str, place: int) -> None:
    with pytest.raises(json.JSONDecodeError, match="is half of a character") as caught:
        strict_json.loads(text)

    assert place == caught.value.pos
    assert json.loads(text) == strict_json.loads(text, surrogates=True)
