"""Bodies that are no requests: each gets an answer in its binding's shape, and nothing breaks."""

from __future__ import annotations

import json

import pytest

from agentdouble import A2AApp
from tests.agentdouble.apps.a2a.wire import V1, Wire, talk

DEEP = b"[" * 100_000 + b"]" * 100_000
NO_JSON = {"empty": b"", "broken": b"{nope", "not UTF-8": b'{"a": "\xff"}', "two": b"{} {}"}
NO_REQUEST = {
    "number": b"7",
    "null": b"null",
    "string": b'"x"',
    "list": b"[]",
    "batch": b'[{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}]',
    "no version": b'{"id": 1, "method": "GetTask", "params": {"id": "x"}}',
    "no method": b'{"jsonrpc": "2.0", "id": 1}',
    "odd id": b'{"jsonrpc": "2.0", "id": {}, "method": "GetTask", "params": {"id": "x"}}',
    "odd params": b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": "x"}',
    "deep": DEEP,
}
REST = ["/message:send", "/message:stream"]


def app() -> A2AApp:
    return A2AApp(runner="echo")


@pytest.mark.parametrize(
    ("body", "code"),
    [*((body, -32700) for body in NO_JSON.values()), *((b, -32600) for b in NO_REQUEST.values())],
    ids=[*NO_JSON, *NO_REQUEST],
)
def test_json_rpc_names_the_error(body: bytes, code: int) -> None:
    """-32700 for what is no JSON, -32600 for what is no request."""

    async def conversation(wire: Wire) -> None:
        answer = await wire.http.post("/", content=body, headers=V1)
        assert (200, code) == (answer.status_code, answer.json()["error"]["code"])

    talk(app(), conversation)


@pytest.mark.parametrize("path", REST)
def test_rest_names_the_error(path: str) -> None:
    """400 with the protocol's error, also where a stream was asked for."""
    bodies = [body for name, body in NO_JSON.items() if name != "empty"]
    odd = [b"7", b"[]", b'{"message": 7}', b'{"message": {"role": []}}', DEEP]

    async def conversation(wire: Wire) -> None:
        for body in (*bodies, *odd):
            answer = await wire.http.post(path, content=body, headers=V1)
            assert (400, "INVALID_ARGUMENT") == (
                answer.status_code,
                answer.json()["error"]["status"],
            ), body[:40]

    talk(app(), conversation)


@pytest.mark.parametrize("depth", [40, 400])
def test_data_may_be_as_deep_as_the_protocol_can_carry(depth: int) -> None:
    """40 levels are answered, 400 are refused."""
    data = json.loads("[" * depth + "]" * depth)

    async def conversation(wire: Wire) -> str:
        said = {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": data}]}
        answer = await wire.rpc("SendMessage", {"message": said})
        return "refused" if answer.get("error", {}).get("code") == -32602 else "answered"

    assert ("answered" if depth == 40 else "refused") == talk(app(), conversation)


@pytest.mark.slow
@pytest.mark.parametrize("count", [50_000, 200_000])
def test_data_may_have_as_many_values_as_the_sdk_converts_at_once(count: int) -> None:
    """By both bindings; more would stop the event loop, and with it every other caller."""
    parts = [{"data": [[]] * count}, {"text": "a" * 600_000}]
    said = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": parts}}

    async def conversation(wire: Wire) -> list[str]:
        rest = await wire.http.post("/message:send", json=said, headers=V1)
        return [json.dumps(await wire.rpc("SendMessage", said)), rest.text]

    refused = ["more than 100000 values" in answer for answer in talk(app(), conversation)]
    assert [count == 200_000] * 2 == refused


def test_a_body_that_is_too_large_is_refused() -> None:
    """413, by the application itself where no double stands in front of it."""

    async def conversation(wire: Wire) -> None:
        large = b"x" * (32 * 1024 * 1024 + 1)
        for path in ("/", "/message:send"):
            answer = await wire.http.post(path, content=large, headers=V1)
            assert 413 == answer.status_code

    talk(app(), conversation)


def test_a_path_that_is_not_there_is_not_found() -> None:
    """Without a redirection to another one."""

    async def conversation(wire: Wire) -> None:
        assert [404, 405] == [
            (await wire.http.get("/nothing", headers=V1)).status_code,
            (await wire.http.get("/", headers=V1)).status_code,
        ]

    talk(app(), conversation)
