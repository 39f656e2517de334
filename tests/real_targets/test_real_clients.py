"""Agents on the platform's SDK call applications on the double.

Its google-adk is of the time of A2A 0.3; tests/real_clients has the newest one.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentdouble import Emulator
from doublecheck.contracts.reference.agentdouble_apps import reference_apps
from doublecheck.contracts.reference.tools import AGENT, TOOLS
from tests.real_targets.installed import case
from tests.real_targets.platforms import Implementation

CALL_AN_AGENT = """
import asyncio, sys
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.genai import types

async def call(card, answer):
    runner = InMemoryRunner(RemoteA2aAgent(name="remote", agent_card=card), app_name="checked")
    session = await runner.session_service.create_session(app_name="checked", user_id="ann")
    message = types.Content(role="user", parts=[types.Part(text="say hello")])
    said = runner.run_async(user_id="ann", session_id=session.id, new_message=message)
    texts = [p.text async for e in said if e.content for p in e.content.parts or []]
    open(answer, "w").write(" ".join(texts))

asyncio.run(call(*sys.argv[1:]))
"""
USE_TOOLS = """
import asyncio, sys
from google.adk.tools.mcp_tool.mcp_session_manager import StreamableHTTPConnectionParams
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset

async def use(url, answer):
    toolset = McpToolset(connection_params=StreamableHTTPConnectionParams(url=url, timeout=60))
    names = sorted(tool.name for tool in await toolset.get_tools())
    await toolset.close()
    open(answer, "w").write(" ".join(names))

asyncio.run(use(*sys.argv[1:]))
"""


@pytest.fixture
def double() -> Iterator[Emulator]:
    """Start a double with the reference applications."""
    with Emulator(*reference_apps()) as double:
        yield double


@case("agentkit-sdk-python")
def test_adk_agent_calls_an_a2a_application(
    implementation: Implementation, double: Emulator, tmp_path: Path
) -> None:
    """Its remote agent reads the card and returns the application's answer."""
    card = f"{double.url}/.well-known/agent.json"

    assert "say hello" == _answer(implementation, tmp_path, CALL_AN_AGENT, card)


@case("agentkit-sdk-python")
def test_adk_agent_lists_the_tools_of_an_mcp_application(
    implementation: Implementation, double: Emulator, tmp_path: Path
) -> None:
    names = sorted(function.__name__ for function in (*TOOLS, AGENT))

    assert names == _answer(implementation, tmp_path, USE_TOOLS, f"{double.url}/mcp").split()


def _answer(implementation: Implementation, folder: Path, code: str, address: str) -> str:
    answer = folder / "answer"
    ended = subprocess.run(
        [os.environ[implementation.variable], "-W", "ignore", "-c", code, address, str(answer)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert 0 == ended.returncode, ended.stderr
    return answer.read_text()
