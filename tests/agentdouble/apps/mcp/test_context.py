"""Functions that use the request's context, by the official client and by raw HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client
from mcp.types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent

from agentdouble import Emulator
from tests.agentdouble import mcp_wire
from tests.agentdouble.apps.mcp.notes import (
    ERAS,
    LEGACY,
    MODERN,
    answer_with,
    ask,
    error_of,
    notes,
    text_of,
)

# logs and sampling are deprecated by the newest revision, and there in the one before
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
both_eras = pytest.mark.parametrize("mode", ERAS)


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    with Emulator(notes(), pool_size=0) as double:
        yield double


@both_eras
def test_progress_arrives_while_a_tool_runs(double: Emulator, mode: str) -> None:
    """Each report, in order."""
    reports = []

    async def note(*report: Any) -> None:
        reports.append(report)

    async def call(client: Client) -> Any:
        return await client.call_tool("work", {"steps": 3}, progress_callback=note)

    assert {"result": 3} == ask(double.url, mode, call).structured_content
    assert [(step, 3, f"step {step}") for step in range(3)] == reports


@pytest.mark.parametrize(
    ("mode", "level", "expected"),
    [
        (LEGACY, None, ["a detail", "a line", {"of": "a problem"}]),
        (LEGACY, "warning", [{"of": "a problem"}]),
        (MODERN, None, []),
        (MODERN, "info", ["a line", {"of": "a problem"}]),
    ],
)
def test_logs_arrive_from_the_requested_level(
    double: Emulator, mode: str, level: Any, expected: list[Any]
) -> None:
    """Set by a request of the session, or by each call."""
    logged = []

    async def note(line: Any) -> None:
        logged.append(line.data)

    async def call(client: Client) -> None:
        if mode == LEGACY and level:
            await client.set_logging_level(level)
        await client.call_tool("tell", {})

    per_call = {"log_level": level} if mode == MODERN else {}
    ask(double.url, mode, call, logging_callback=note, **per_call)

    assert expected == logged


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (ElicitResult(action="accept", content={"name": "ann"}), "ann"),
        (ElicitResult(action="decline"), "decline"),
        (ElicitResult(action="cancel"), "cancel"),
    ],
)
def test_tool_asks_the_user(double: Emulator, answer: ElicitResult, expected: str) -> None:
    """The answer is an instance of the requested model."""

    async def call(client: Client) -> str:
        return text_of(await client.call_tool("ask", {}))

    fill_in = answer_with(answer)
    assert expected == ask(double.url, LEGACY, call, elicitation_callback=fill_in)


def test_tool_samples_the_client_s_model(double: Emulator) -> None:
    """It gets the model's answer."""
    prompts = []

    async def sample(_context: Any, params: Any) -> CreateMessageResult:
        prompts.append((params.system_prompt, params.messages[0].content.text))
        return CreateMessageResult(role="assistant", content=TextContent(text="Paris"), model="m")

    async def call(client: Client) -> str:
        return text_of(await client.call_tool("think", {}))

    assert "Paris" == ask(double.url, LEGACY, call, sampling_callback=sample)
    assert [("Be short.", "The capital of France?")] == prompts


def test_tool_asks_in_rounds(double: Emulator) -> None:
    """It is called again with the answers and its state, which the client cannot read."""

    async def roots(_context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri="file:///work")])

    async def call(client: Client) -> str:
        return text_of(await client.call_tool("ask_in_rounds", {}))

    body, headers = mcp_wire.modern("ask_in_rounds", {}), mcp_wire.modern_headers(None, "")
    headers["Mcp-Name"] = "ask_in_rounds"
    first = mcp_wire.http.post(f"{double.url}/mcp", json=body, headers=headers)
    body["params"] |= {"inputResponses": {"roots": {"roots": []}}, "requestState": "asked"}
    forged = mcp_wire.http.post(f"{double.url}/mcp", json=body, headers=headers)

    assert "asked: file:///work" == ask(double.url, MODERN, call, list_roots_callback=roots)
    assert "asked" != mcp_wire.result(first)["requestState"]
    assert -32602 == forged.json()["error"]["code"]


@both_eras
def test_sync_tool_knows_its_request(double: Emulator, mode: str) -> None:
    """By the SDK's annotation too; its thread reaches the client through anyio."""

    async def call(client: Client) -> Any:
        tools = (await client.list_tools()).tools
        (schema,) = (tool.input_schema for tool in tools if tool.name == "sync")
        called = await client.call_tool("sync", {"a": 1, "ctx": "not for callers"})
        optional = await client.call_tool("optional", {})
        return list(schema["properties"]), called.structured_content, optional.is_error

    properties, called, failed = ask(double.url, mode, call)

    version = "2025-11-25" if mode == LEGACY else MODERN
    assert (["a", "b"], False) == (properties, failed)
    assert {"result": ["3", "Context", version, "ann"]} == called


@both_eras
def test_tool_reads_resources(double: Emulator, mode: str) -> None:
    """With a context too; a missing or failing one is a tool error."""
    uris = ["notes://all", "notes://one/a/3", "notes://one/raise/1", "notes://none"]

    async def call(client: Client) -> list[tuple[bool | None, str]]:
        results = [await client.call_tool("read", {"uri": uri}) for uri in uris]
        return [(result.is_error, text_of(result)) for result in results]

    failed = "The resource notes://one/{name}/{number} of notes failed: KeyError: 'no such note'"
    assert [
        (False, "# All, for ann"),
        (False, '{\n  "name": "a",\n  "number": 3\n}'),
        (True, failed),
        (True, "Unknown resource: notes://none"),
    ] == ask(double.url, mode, call)


@pytest.mark.parametrize("tool", ["ask", "think"])
@both_eras
def test_unsupported_client_features_are_not_requested(
    double: Emulator, mode: str, tool: str
) -> None:
    """The error is one of the protocol."""

    async def call(client: Client) -> tuple[int, str]:
        return await error_of(client.call_tool(tool, {}))

    assert -32600 == ask(double.url, mode, call)[0]
