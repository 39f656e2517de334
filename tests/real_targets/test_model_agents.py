"""Unmodified agents use the double's scripted model, and call its sandbox."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from agentdouble import Emulator
from tests.real_targets.model_agents import AGENTS, ModelAgent

pytestmark = pytest.mark.slow

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
    """A double whose model calls run_code, and then says its result."""
    with Emulator(model_scripts=SCRIPTS, journal_size=500) as double:
        yield double


def _parameter(agent: ModelAgent) -> object:
    missing = f"{agent.variable} names no Python with it: pip install {agent.install}"
    absent = pytest.mark.skipif(agent.variable not in os.environ, reason=missing)
    return pytest.param(agent, id=agent.name, marks=absent)


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
