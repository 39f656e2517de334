"""Agents on the platform's SDK call applications on the double.

Its google-adk is of the time of A2A 0.3; tests/real_clients has the newest one.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentdouble import Emulator
from doublecheck.contracts.reference.agentdouble_apps import reference_apps
from doublecheck.contracts.reference.tools import AGENT, TOOLS
from tests.real_targets.model_agents import AGENTS, ModelAgent
from tests.real_targets.platforms import Implementation, case

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


CONVERSATIONS = 50
CODE = {"code": "print(6 * 7)", "language": "python3"}
SCRIPTS: tuple[dict[str, Any], ...] = (
    {"when": {"after": "run_code"}, "steps": [{"text": "It is {{result}}", "times": "all"}]},
    {
        "when": {"contains": "6 * 7"},
        "steps": [{"calls": [{"name": "run_code", "arguments": CODE}], "times": "all"}],
    },
)


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    """A double with the reference applications; its model calls run_code, and says its result."""
    with Emulator(*reference_apps(), model_scripts=SCRIPTS, journal_size=500) as double:
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


def _parameter(agent: ModelAgent) -> object:
    missing = f"{agent.variable} names no Python with it: pip install {agent.install}"
    absent = pytest.mark.skipif(agent.variable not in os.environ, reason=missing)
    return pytest.param(agent, id=agent.name, marks=absent)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["whole", "stream"])
@pytest.mark.parametrize("agent", [_parameter(agent) for agent in AGENTS])
def test_an_agent_says_the_same_each_time(double: Emulator, agent: ModelAgent, mode: str) -> None:
    """Each conversation calls the sandbox, and has the same events but for ids and times."""
    double.reset()

    conversations = _run(double, agent, CONVERSATIONS, mode)

    assert CONVERSATIONS == len(conversations)
    assert all(conversation == conversations[0] for conversation in conversations)
    assert "42" in json.dumps(conversations[0])
    calls = sum("/invoke" in entry.url for entry in double.journal.entries())
    assert CONVERSATIONS == calls
    own = {"Authorization": f"Bearer {double.token}"}
    requests = httpx.get(f"{double.url}/_emulator/model", headers=own).json()["requests"]
    assert {(agent.form, mode == "stream")} == {(r["form"], r["stream"]) for r in requests}


@pytest.mark.slow
@pytest.mark.parametrize("agent", [_parameter(agent) for agent in AGENTS])
def test_an_agent_shows_which_script_is_nearest(double: Emulator, agent: ModelAgent) -> None:
    """The error of its framework has the double's sentence."""
    table = {"when": {"contains": "6 * 8"}, "steps": [{"text": "48"}]}
    with Emulator(model_scripts=[table]) as other:
        ended = _start(other, agent, 1, "whole")

    assert "The nearest script is for when(contains='6 * 8')" in ended.stdout + ended.stderr


def _run(double: Emulator, agent: ModelAgent, times: int, mode: str) -> list[Any]:
    ended = _start(double, agent, times, mode)
    assert 0 == ended.returncode, ended.stderr[-3000:]
    events: list[Any] = json.loads(ended.stdout.strip().splitlines()[-1])
    return events


def _start(
    double: Emulator, agent: ModelAgent, times: int, mode: str
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **double.environment("model"), "DOUBLE": double.url}
    return subprocess.run(
        [os.environ[agent.variable], "-c", agent.source, str(times), mode],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
