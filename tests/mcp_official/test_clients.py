"""The official client and a hand-written one, configured from the access record alone."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest
from httpx_sse import EventSource
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CallToolResult,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ListRootsResult,
    LoggingMessageNotificationParams,
    PromptReference,
    ResourceUpdatedNotification,
    Root,
    TextContent,
)

from agentdouble import Emulator
from tests.mcp_official import everything
from tests.mcp_official.conftest import DIRECT, FRONT, server_of
from tests.mcp_official.everything.offers import BINARY, PROMPTS, TEXT, WATCHED

if sys.version_info < (3, 11):
    from exceptiongroup import BaseExceptionGroup

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.parametrize("service", [DIRECT, FRONT]),
]

LEGACY, MODERN = "legacy", "2026-07-28"
both_eras = pytest.mark.parametrize("mode", [LEGACY, MODERN])
TIMEOUT_S = 60
ABOUT = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}

Test = Callable[[Client], Coroutine[Any, Any, Any]]


class User:
    """The user of a client: answers the server's questions and records its messages."""

    def __init__(self) -> None:
        self.questions: list[str] = []
        self.logged: list[Any] = []
        self.changed: list[str] = []

    async def sample(self, _context: Any, query: CreateMessageRequestParams) -> CreateMessageResult:
        (content,) = query.messages[0].content_as_list
        assert isinstance(content, TextContent)
        self.questions.append(content.text)
        return CreateMessageResult(
            role="assistant", content=TextContent(text="Paris"), model="a-model"
        )

    async def fill_in(self, _context: Any, query: ElicitRequestParams) -> ElicitResult:
        assert isinstance(query, ElicitRequestFormParams)
        self.questions.append(query.message)
        fields = query.requested_schema["properties"]
        return ElicitResult(action="accept", content=dict.fromkeys(fields, "ann"))

    async def roots(self, _context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri="file:///work")])

    async def note(self, line: LoggingMessageNotificationParams) -> None:
        self.logged.append(line.data)

    async def hear(self, message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            self.changed.append(str(message.params.uri))


@asynccontextmanager
async def connected(record: str, service: str, mode: str, user: User) -> AsyncIterator[Client]:
    """Connect the official client with the access record as it is."""
    server = json.loads(record)["mcpServers"][service]
    async with create_mcp_http_client(headers=server["headers"]) as http:
        transport = streamable_http_client(server["httpUrl"], http_client=http)
        async with Client(
            transport,
            mode=mode,
            sampling_callback=user.sample,
            elicitation_callback=user.fill_in,
            list_roots_callback=user.roots,
            logging_callback=user.note,
            message_handler=user.hear,
            log_level="info" if mode == MODERN else None,
        ) as client:
            yield client


def with_client(
    double: Emulator, service: str, mode: str, test: Test, user: User | None = None
) -> Any:
    """Run a test with a connected client and return its result."""
    record = json.dumps(double.mcp.record(service))

    async def run() -> Any:
        with anyio.fail_after(TIMEOUT_S):
            async with connected(record, service, mode, user or User()) as client:
                return await test(client)

    return anyio.run(run)


@both_eras
def test_client_lists_everything_on_the_server(double: Emulator, service: str, mode: str) -> None:
    """The lists of tools, prompts, resources and templates are those of the server."""

    async def lists(client: Client) -> list[list[Any]]:
        return [
            (await client.list_tools()).tools,
            (await client.list_prompts()).prompts,
            [resource.uri for resource in (await client.list_resources()).resources],
            [item.name for item in (await client.list_resource_templates()).resource_templates],
        ]

    expected = [
        everything.TOOLS.listed(),
        PROMPTS.listed(),
        [TEXT, BINARY, WATCHED],
        ["template"],
    ]
    assert expected == with_client(double, service, mode, lists)


@both_eras
def test_client_reads_prompts_and_completes(double: Emulator, service: str, mode: str) -> None:

    async def read(client: Client) -> list[Any]:
        resource = await client.read_resource("test://template/7/data")
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
        reference = PromptReference(name="test_prompt_with_arguments")
        completed = await client.complete(reference, {"name": "arg1", "value": "par"})
        content = prompt.messages[0].content
        assert isinstance(content, TextContent)
        return [
            json.loads(getattr(resource.contents[0], "text", "")),
            content.text,
            completed.completion.values,
        ]

    expected = [
        {"id": "7", "templateTest": True, "data": "Data for ID: 7"},
        "Prompt with arguments: arg1='a', arg2='b'",
        ["paris", "park", "party"],
    ]
    assert expected == with_client(double, service, mode, read)


@both_eras
def test_progress_and_logs_arrive_while_a_tool_runs(
    double: Emulator, service: str, mode: str
) -> None:
    """Each report arrives once and in order, and logs reach the clients that enabled them."""
    user, reports = User(), []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    async def call(client: Client) -> list[str]:
        if mode == LEGACY:
            await client.set_logging_level("info")
        called = await client.call_tool("test_tool_with_progress", {}, progress_callback=note)
        return [_text(called), _text(await client.call_tool("test_tool_with_logging"))]

    result = with_client(double, service, mode, call, user)

    assert ["Tool with progress executed.", "Tool with logging executed."] == result
    assert [(at, 100, f"Completed step {at} of 100") for at in (0, 50, 100)] == reports
    expected = ["execution started", "processing data", "execution completed"]
    assert [f"Tool {line}" for line in expected] == user.logged


@pytest.mark.parametrize(
    ("mode", "tool", "arguments", "questions", "expected"),
    [
        (
            LEGACY,
            "test_sampling",
            {"prompt": "The capital of France?"},
            ["The capital of France?"],
            "LLM response: Paris",
        ),
        (
            LEGACY,
            "test_elicitation",
            {"message": "Who are you?"},
            ["Who are you?"],
            'User response: action=accept, content={"username": "ann", "email": "ann"}',
        ),
        (
            MODERN,
            "test_input_required_result_sampling",
            {},
            ["What is the capital of France?"],
            "Paris",
        ),
        (
            MODERN,
            "test_input_required_result_elicitation",
            {},
            ["What is your name?"],
            "Hello, ann!",
        ),
        (MODERN, "test_input_required_result_list_roots", {}, [], "Roots: file:///work"),
        (
            MODERN,
            "test_input_required_result_multi_round",
            {},
            ["Step 1: What is your name?", "Step 2: What is your favorite color?"],
            "ann likes ann.",
        ),
    ],
)
def test_tool_calls_the_client(
    double: Emulator,
    service: str,
    mode: str,
    tool: str,
    arguments: dict[str, Any],
    questions: list[str],
    expected: str,
) -> None:
    """Sampling, elicitation and roots reach the user, and the answers reach the tool."""
    user = User()

    async def call(client: Client) -> str:
        return _text(await client.call_tool(tool, arguments))

    assert expected == with_client(double, service, mode, call, user)
    assert questions == user.questions


def test_session_receives_updates_of_a_subscribed_resource(double: Emulator, service: str) -> None:
    """They arrive on the session's stream until it unsubscribes."""
    user = User()

    async def subscribe(client: Client) -> None:
        await client.subscribe_resource(WATCHED)
        while not user.changed:  # the client opens that stream when it comes to it
            await client.call_tool("change_watched_resource")
        await client.unsubscribe_resource(WATCHED)

    with_client(double, service, LEGACY, subscribe, user)

    assert {WATCHED} == set(user.changed)


def test_listener_receives_updates_of_a_resource(double: Emulator, service: str) -> None:
    """Without sessions, updates arrive on the stream that the client opened for them."""

    async def listen(client: Client) -> Any:
        async with client.listen(resource_subscriptions=[WATCHED]) as changes:
            await client.call_tool("change_watched_resource")
            return await changes.__anext__()

    assert WATCHED == with_client(double, service, MODERN, listen).uri


def test_client_resumes_a_closed_stream(double: Emulator, service: str) -> None:
    """A stream that closes during a call continues at the next event."""

    async def call(client: Client) -> str:
        return _text(await client.call_tool("test_reconnection"))

    assert "Reconnection test completed." == with_client(double, service, LEGACY, call)


@pytest.mark.slow
def test_sessions_are_isolated(double: Emulator, service: str) -> None:
    """With many clients, each gets only its own questions and messages."""
    record = json.dumps(double.mcp.record(service))
    users = {f"Question {number}": User() for number in range(5)}

    async def ask(question: str, user: User) -> None:
        async with connected(record, service, LEGACY, user) as client:
            await client.call_tool("test_elicitation", {"message": question})

    async def all_at_once() -> None:
        with anyio.fail_after(TIMEOUT_S):
            async with anyio.create_task_group() as tasks:
                for question, user in users.items():
                    tasks.start_soon(ask, question, user)

    anyio.run(all_at_once)

    assert {question: [question] for question in users} == {
        question: user.questions for question, user in users.items()
    }


@both_eras
def test_client_with_wrong_key_is_refused(double: Emulator, service: str, mode: str) -> None:
    record = double.mcp.record(service)
    record["mcpServers"][service]["headers"]["Authorization"] = "Bearer another"

    async def connect() -> None:
        with anyio.fail_after(TIMEOUT_S):
            async with connected(json.dumps(record), service, mode, User()) as client:
                await client.list_tools()

    with pytest.raises((MCPError, BaseExceptionGroup)) as raised:
        anyio.run(connect)

    assert [MCPError] == [type(leaf) for leaf in _leaves(raised.value)]


def test_plain_httpx_client_answers_a_tool(double: Emulator, service: str) -> None:
    """It opens a session, calls, reads the question on the stream and posts the answer."""
    server = server_of(double, service)
    with httpx.Client(headers=server["headers"], timeout=TIMEOUT_S, trust_env=False) as client:
        client.headers["Accept"] = "application/json, text/event-stream"
        url, client_info = server["httpUrl"], {"clientInfo": {"name": "by-hand", "version": "1"}}
        client_info |= {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}}

        opened = client.post(url, json=_message("initialize", client_info, 1))
        client.headers["Mcp-Session-Id"] = opened.headers["Mcp-Session-Id"]
        client.headers["Mcp-Protocol-Version"] = "2025-11-25"
        ready = client.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (200, 202) == (opened.status_code, ready.status_code)

        call = {"name": "test_elicitation", "arguments": {"message": "Who?"}}
        with client.stream("POST", url, json=_message("tools/call", call, 2)) as answer:
            events = EventSource(answer).iter_sse()
            messages = (json.loads(event.data) for event in events if event.data)
            question = next(messages)
            result = {"action": "decline"}
            client.post(url, json={"jsonrpc": "2.0", "id": question["id"], "result": result})
            text = next(messages)["result"]["content"][0]["text"]
        ended = [client.delete(url).status_code, client.delete(url).status_code]

    assert ("elicitation/create", "Who?") == (question["method"], question["params"]["message"])
    assert "User response: action=decline, content=null" == text
    assert [200, 404] == ended


def test_plain_httpx_client_answers_in_rounds(double: Emulator, service: str) -> None:
    """Without a session, it repeats the call with the requested answers."""
    server = server_of(double, service)
    call = {"name": "test_input_required_result_elicitation", "arguments": {}, "_meta": ABOUT}
    headers = {
        **server["headers"],
        "Accept": "application/json, text/event-stream",
        "Mcp-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": call["name"],
    }
    answers = {"user_name": {"action": "accept", "content": {"name": "ann"}}}
    with httpx.Client(headers=headers, timeout=TIMEOUT_S, trust_env=False) as client:
        first = client.post(server["httpUrl"], json=_message("tools/call", call, 1))
        second = client.post(
            server["httpUrl"],
            json=_message("tools/call", {**call, "inputResponses": answers}, 2),
        )

    pause, reply = _result(first), _result(second)
    assert ("input_required", ["user_name"]) == (pause["resultType"], list(pause["inputRequests"]))
    assert "Hello, ann!" == reply["content"][0]["text"]


def _result(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    if answer.headers["Content-Type"].startswith("application/json"):
        result: dict[str, Any] = answer.json()["result"]
        return result
    *_, last = (event.data for event in EventSource(answer).iter_sse() if event.data)
    streamed: dict[str, Any] = json.loads(last)["result"]
    return streamed


def _message(method: str, params: dict[str, Any], id_: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def _text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert not result.is_error
    return content.text


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for exception in error.exceptions for leaf in _leaves(exception)]
    return [error]
