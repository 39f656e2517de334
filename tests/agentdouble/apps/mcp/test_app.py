"""MCPApp: tools as clients see them, by raw HTTP and by the official client."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError

from agentdouble import Emulator, MCPApp, run_code
from doublecheck import Platform, Target
from doublecheck.errors import RefusedError
from doublecheck.results import McpClient
from tests.agentdouble import mcp_wire
from tests.agentdouble.apps.mcp.sample import Gate, sample
from tests.agentdouble.calling import background, http

ROOT = Path(__file__).parents[4]
ERAS = ("legacy", "auto", "2026-07-28")


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    """A double with the sample at ``/mcp`` and another application below ``/runtimes``."""
    further = MCPApp("further")

    @further.tool
    def who() -> str:
        return "further"

    with Emulator(sample(), further) as double:
        yield double


@pytest.fixture(scope="module")
def mcp(double: Emulator) -> Iterator[McpClient]:
    """A client of the sample."""
    with Platform(Target.of(double)) as platform, platform.mcp() as client:
        yield client


def test_sync_and_async_functions_are_called(mcp: McpClient) -> None:
    """Defaults apply; a non-object arrives as ``result`` and as text."""
    results = [mcp.call("add", a=2), mcp.call("add_later", a=2, b=3)]

    assert [({"result": 3}, "3", False), ({"result": 5}, "5", False)] == [
        (result.structured, result.text, result.is_error) for result in results
    ]


STRUCTURED: list[tuple[str, dict[str, Any], Any, str | None]] = [
    ("bare", {"value": {"a": [1, None, "ü"]}}, {"value": {"a": [1, None, "ü"]}}, None),
    ("unannotated", {}, {"value": [1, None]}, None),
    (
        "tree",
        {"item": {"name": "root", "parts": [{"name": "leaf"}]}, "point": {"x": "1", "y": 2}},
        {"item": "root", "parts": ["leaf"], "y": 2},
        None,
    ),
    ("grow", {"name": "n"}, {"name": "n", "parts": [{"name": "leaf", "parts": []}]}, None),
    ("names", {}, {"result": ["a", "b"]}, "a\nb"),
    ("nothing", {}, {"result": None}, ""),
    ("positional", {"a": 1, "copy": 2}, {"result": [1, 2]}, "1\n2"),
    ("agent", {"prompt": "hello"}, {"result": "HELLO"}, "HELLO"),
]


@pytest.mark.parametrize(("tool", "arguments", "structured", "text"), STRUCTURED)
def test_returned_object_is_structured_content(
    mcp: McpClient, tool: str, arguments: dict[str, Any], structured: Any, text: str | None
) -> None:
    """And the same as text for clients without structured content."""
    result = mcp.call(tool, **arguments)

    assert (False, structured) == (result.is_error, result.structured)
    assert (json.loads(result.text) if text is None else result.text) == (
        structured if text is None else text
    )


def test_protocol_blocks_are_sent_unchanged(mcp: McpClient) -> None:
    """A tool may return the SDK's content, or a whole result."""
    picture, refusing = mcp.call("picture"), mcp.call("refusing")

    assert (
        {"type": "text", "text": "a"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    ) == picture.content
    assert (True, "not today") == (refusing.is_error, refusing.text)


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("fail", {"kind": "text"}, "no such city"),
        ("fail", {"kind": "key"}, "KeyError: 'city'"),
        ("fail", {"kind": "exit"}, "SystemExit: 3"),
        ("fail_later", {}, "SystemExit: 4"),
        ("liar", {}, "Error executing tool liar"),
        ("add", {"a": "x"}, "Input should be a valid integer"),
        ("add", {}, "Field required"),
        ("tree", {"item": "{broken", "point": 3}, "Input should be a valid dictionary"),
    ],
)
def test_tool_exception_is_a_tool_error(
    mcp: McpClient, tool: str, arguments: dict[str, Any], text: str
) -> None:
    """So are arguments of the wrong type; the next call is answered."""
    result = mcp.call(tool, **arguments)

    assert (True, None, True) == (result.is_error, result.structured, text in result.text)
    assert {"result": 3} == mcp.call("add", a=2).structured


def test_failure_is_logged_with_the_application_s_traceback(
    mcp: McpClient, caplog: pytest.LogCaptureFixture
) -> None:
    """It starts in the tool, without the double's frames."""
    mcp.call("fail", kind="text")

    (record,) = (log for log in caplog.records if log.name.startswith("agentdouble.apps"))
    assert "The tool fail of sample raised." == record.getMessage()
    assert record.exc_info is not None
    traceback = record.exc_info[2]
    assert traceback is not None
    assert Path(traceback.tb_frame.f_code.co_filename).name == "sample.py"


def test_unknown_arguments_can_be_refused() -> None:
    """The error names them, and the schema forbids them."""
    unknowns = {"U-MCP-ARGUMENTS": "refused"}
    with Emulator(sample(), unknowns=unknowns) as double, Platform(Target.of(double)) as platform:
        mcp = platform.mcp()
        (add,) = (tool for tool in mcp.tools() if tool.name == "add")
        refused = mcp.call("add", a=2, c=5)

    assert False is add.input_schema["additionalProperties"]
    assert (True, "add does not accept c. It accepts a, b.") == (
        refused.is_error,
        refused.text,
    )


def test_unknown_tool_is_refused(mcp: McpClient) -> None:
    """The JSON-RPC error lists the existing tools."""
    with pytest.raises(RefusedError, match=r"Unknown tool: ad\. sample has: add, add_later") as e:
        mcp.call("ad", a=1)

    assert "-32602" == e.value.code


@pytest.mark.parametrize("tool", ["block", "block_its_loop"])
def test_blocking_tool_does_not_block_the_server(tool: str) -> None:
    """A sync one waits in a thread, an async one on a separate loop."""
    gate = Gate()
    with Emulator(sample(gate)) as double, Platform(Target.of(double)) as platform:
        blocked = background(lambda: platform.mcp().call(tool))
        assert gate.come.wait(30)
        meanwhile = (platform.ping(), platform.mcp().call("add", a=2).structured)
        gate.open.set()

        assert ("pong!", {"result": 3}) == meanwhile
        assert "opened" == blocked.result(60).text


def test_cancelled_call_ends() -> None:
    """By the notification of the version with sessions."""
    gate = Gate()
    with Emulator(sample(gate)) as double:
        url = f"{double.url}/mcp"
        session = mcp_wire.open_session(url, None)
        message = mcp_wire.message("tools/call", {"name": "hang"}, 7)
        waiting = background(lambda: mcp_wire.post(url, message, None, session))
        assert gate.come.wait(30)
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        mcp_wire.post(url, note, None, session)

        assert gate.exited.wait(30)
        assert all("result" not in reply for reply in mcp_wire.replies(waiting.result(60)))


def test_listening_client_does_not_delay_shutdown(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its stream ends with the double; uvicorn need not time out and cancel it."""
    monkeypatch.setattr("agentdouble.server.uvicorn_server.QUIET_S", 30)
    monkeypatch.setattr("agentdouble.server.starting.GRACE_S", 60)
    with Emulator(sample()) as double:
        url = f"{double.url}/mcp"
        session = mcp_wire.open_session(url, None)
        with mcp_wire.streamed(url, None, session) as (answer, events):
            double.stop()

            assert (200, []) == (answer.status_code, list(events))
    assert [] == [log.getMessage() for log in caplog.records if log.name.startswith("agentdouble")]


def test_application_can_be_a_service(double: Emulator) -> None:
    """With its own key, and its tools may block there too."""
    app = MCPApp("behind")

    @app.tool
    async def code(source: str) -> str:
        return run_code(source)

    double.mcp.create("behind", app)
    (record,) = double.mcp.record("behind")["mcpServers"].values()
    with Platform(Target.of(double)) as platform:
        mcp = platform.mcp(record["httpUrl"], headers=record["headers"])

        assert "42" in mcp.call("code", source="print(6 * 7)").text


@pytest.mark.parametrize("tool", ["code", "code_blocking_its_loop"])
def test_run_code_in_a_tool_finds_its_double(double: Emulator, tool: str) -> None:
    """It blocks, and yet the double answers; the call's headers name the session."""
    with Platform(Target.of(double)) as platform:
        mcp = platform.mcp(headers={"user_id": "ann", "session_id": "s1"})
        result = mcp.call(tool, source="print(6 * 7)")
        sessions = platform.sandboxes()

    assert "42" in result.text
    assert "sample_ann_s1" in {session.user_session_id for session in sessions}


@pytest.mark.parametrize("mode", ERAS)
def test_official_client_lists_and_calls(double: Emulator, mode: str) -> None:
    """In both eras of the protocol."""

    async def ask() -> tuple[Any, ...]:
        async with Client(f"{double.url}/mcp", mode=mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            added = await client.call_tool("add", {"a": 2})
            failed = await client.call_tool("fail", {"kind": "text"})
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool("nobody", {})
            return tools["add"].description, added.structured_content, failed.is_error

    assert ("Add two numbers.", {"result": 3}, True) == asyncio.run(ask())


def test_application_is_an_asgi_application() -> None:
    """Inside its lifespan it answers at ``/mcp``, in any server."""

    async def ask() -> Any:
        app = sample()
        transport = httpx2.ASGITransport(app)
        async with app.lifespan(), httpx2.AsyncClient(transport=transport) as client:
            headers = mcp_wire.modern_headers(None, "add")
            url, body = "http://testserver", mcp_wire.modern("add", {"a": 2})
            answer = await client.post(f"{url}/mcp", json=body, headers=headers)
            elsewhere = await client.post(f"{url}/mcp/", json=body, headers=headers)
            return answer, elsewhere

    answer, elsewhere = asyncio.run(ask())

    assert {"result": 3} == mcp_wire.result(answer)["structuredContent"]
    message = "sample is an MCP application and answers at /mcp."
    assert (404, {"error": {"message": message, "type": "NotFound"}}) == (
        elsewhere.status_code,
        elsewhere.json(),
    )


def test_missing_lifespan_is_reported() -> None:
    """A server without the lifespan protocol cannot host it."""

    async def ask() -> None:
        transport = httpx2.ASGITransport(sample())
        async with httpx2.AsyncClient(transport=transport) as client:
            await client.post("http://testserver/mcp", json=mcp_wire.INITIALIZE)

    with pytest.raises(RuntimeError, match="with the lifespan protocol"):
        asyncio.run(ask())


@pytest.mark.slow
def test_application_runs_standalone(tmp_path: Path) -> None:
    """``run()`` prints its address, answers there, and ends on a signal."""
    script = tmp_path / "alone.py"
    script.write_text(
        "from tests.agentdouble.apps.mcp.sample import sample\nsample().run('127.0.0.1', 0)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-W", "error", script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        try:
            name, _, url = process.stdout.readline().strip().partition(" answers at ")
            answer = mcp_wire.call_modern(url, None, "add", a=2)
            foreign = http.post(url, json={}, headers={"Origin": "http://evil.example"})
        finally:
            process.send_signal(signal.SIGTERM)
        ended = process.wait(30)

    assert ("sample", {"result": 3}, 403, 0) == (
        name,
        answer["structuredContent"],
        foreign.status_code,
        ended,
    )


def test_tool_can_be_added_while_serving() -> None:
    """The next list has it."""
    app = MCPApp("growing")
    with Emulator(app) as double, Platform(Target.of(double)) as platform:
        before = platform.mcp().tools()
        app.tool(name="late")(lambda: "here")

        assert ((), "here") == (before, platform.mcp().call("late").text)


def test_shipped_coder_is_the_default_tool(shared: Emulator) -> None:
    """It really runs the code."""
    with Platform(Target.of(shared)) as platform:
        headers = {"user_id": "mcp", "session_id": "coder"}
        mcp = platform.mcp(headers=headers)
        mcp.call("coder", prompt="x = 20")

        assert (["coder"], "41") == (
            [tool.name for tool in mcp.tools()],
            mcp.call("coder", prompt="print(2 * x + 1)").text,
        )


def test_foreign_pages_and_hosts_are_refused(double: Emulator) -> None:
    """With an error in the protocol's shape."""
    url, body = f"{double.url}/mcp", mcp_wire.INITIALIZE
    answers = [
        http.post(url, json=body, headers={**mcp_wire.headers(None), **foreign})
        for foreign in ({"Host": "evil.example"}, {"Origin": "http://evil.example"})
    ]

    assert [403, 403] == [answer.status_code for answer in answers]
    assert [-32600, -32600] == [answer.json()["error"]["code"] for answer in answers]


def test_double_s_api_key_protects_it() -> None:
    """A request without it gets 401."""
    with Emulator(sample(), api_key="the-key") as double, Platform(Target.of(double)) as platform:
        answer = mcp_wire.post(f"{double.url}/mcp", mcp_wire.INITIALIZE, None)
        added = platform.mcp().call("add", a=2)

    assert (401, "Bearer") == (answer.status_code, answer.headers["www-authenticate"])
    assert {"result": 3} == added.structured


def test_process_logging_is_not_configured() -> None:
    """The SDK's own application class would configure the root logger."""
    root = logging.getLogger()
    before = (list(root.handlers), root.level)

    assert sample().server

    assert before == (list(root.handlers), root.level)
