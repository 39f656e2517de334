"""``check=True`` turns failures into exceptions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from agentdouble import MCPApp
from doublecheck import AsyncPlatform, Platform, Target
from doublecheck.client.doubles import serving_double
from doublecheck.errors import ResultError
from doublecheck.fixtures.sessions import PlatformSession
from doublecheck.results import LiveOutput

tools = MCPApp("tools")


@tools.tool
def divide(by: int) -> float:
    return 1 / by


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with serving_double(tools) as target:
        yield target


def test_failing_code_raises(client: Platform) -> None:
    """The exception has the sandbox's error and the result with earlier output."""
    with pytest.raises(ResultError, match="ZeroDivisionError: division by zero") as raised:
        client.run_code("print('before')\n1 / 0", check=True)

    error = raised.value
    assert ("ZeroDivisionError", "division by zero") == (error.ename, error.evalue)
    assert "1 / 0" in error.traceback
    assert "\x1b" not in error.traceback
    assert "before\n" == error.result.stdout
    assert "2" == client.run_code("1 + 1", check=True).text
    assert "2" == client.run_code("1 + 1").raise_for_error().text


def test_live_outputs_precede_the_error(client: Platform) -> None:
    outputs: list[LiveOutput] = []
    with pytest.raises(ResultError):
        client.run_code("print(1)\n1 / 0", on_output=outputs.append, check=True)

    assert ["stream", "error"] == [output.msg_type for output in outputs]


def test_a_failing_command_raises(client: Platform) -> None:
    """The error's name is the exit code."""
    with pytest.raises(ResultError) as raised:
        client.sandbox().exec_bash("echo no >&2; exit 3", check=True)

    assert ("exit code 3", "no") == (raised.value.ename, raised.value.evalue)
    assert "yes\n" == client.sandbox().exec_bash("echo yes", check=True).stdout


def test_sandbox_and_session_fixtures_accept_check(client: Platform) -> None:
    sandbox = client.sandbox()
    session = PlatformSession(client, client.agents.create("failing"))
    for failing in (
        lambda: sandbox.run("1 / 0", check=True),
        lambda: sandbox.exec_bash("exit 1", check=True),
        lambda: list(session.run_sse("hello", check=True)),
    ):
        with pytest.raises(ResultError):
            failing()


def test_a_failing_tool_raises_through_its_result(client: Platform) -> None:
    """A call has no ``check``, because named arguments belong to the tool."""
    with client.mcp() as mcp:
        assert 1.0 == mcp.call("divide", by=1).raise_for_error().structured["result"]  # type: ignore[index]
        with pytest.raises(ResultError, match="division by zero"):
            mcp.call("divide", by=0).raise_for_error()


def test_an_async_platform_accepts_check(target: Target) -> None:
    async def ask() -> list[str]:
        events = []
        async with AsyncPlatform(target) as platform:
            session = await platform.agents.create("failing")

            async def stream() -> Any:
                return [
                    event async for event in platform.agents.run_sse(session, "hello", check=True)
                ]

            for call in (
                platform.run_code("1 / 0", check=True),
                platform.sandbox().exec_bash("exit 2", check=True),
                stream(),
            ):
                with pytest.raises(ResultError) as raised:
                    await call
                events.append(str(raised.value).partition("\n")[0])
        return events

    code, command, agent = asyncio.run(ask())

    assert "The code raised ZeroDivisionError: division by zero:" == code
    assert "The command failed: exit code 2." == command
    assert agent.startswith("The agent failed: ")
