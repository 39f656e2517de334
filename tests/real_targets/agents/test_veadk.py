"""Agents of veadk, which pins older protocol libraries than the double: in a runtime.

``DOUBLECHECK_VEADK_PYTHON`` names an interpreter with veadk-python.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from agentdouble import Emulator
from tests.real_targets.agents.conversation import Conversation

PYTHON = "DOUBLECHECK_VEADK_PYTHON"
AGENTS = Path(__file__).parent / "veadk"
SERVER = (
    "-m",
    "google.adk.cli",
    "api_server",
    "--port",
    "$PORT",
    "--session_service_uri=memory://",
)


@pytest.mark.skipif(PYTHON not in os.environ, reason=f"{PYTHON} names no Python that has veadk")
def test_an_agent_of_veadk_runs_code_in_the_double_that_hosts_it(tmp_path: Path) -> None:
    """Its own API server is the runtime; its run_code finds the sandbox by the variables."""
    shutil.copytree(AGENTS, tmp_path / "agents")
    with Emulator() as double:
        url = double.runtimes.create(
            "coder",
            command=[os.environ[PYTHON], "-W", "ignore", *SERVER, "agents"],
            directory=tmp_path,
            environment=double.environment("veadk"),
            start_timeout_s=120,
        )
        talk = Conversation(url, "coder")
        talk.create()
        events = talk.run("compute")

    returned = [
        part["functionResponse"]["response"]["result"]
        for event in events
        for part in event["content"]["parts"]
        if "functionResponse" in part
    ]
    assert ['"text": "42\\n"' in one for one in returned] == [True]
