"""Agents on ``adk api_server`` and on the double, and agents of veadk in a runtime.

veadk pins older protocol libraries than the double; ``DOUBLECHECK_VEADK_PYTHON`` names an
interpreter with veadk-python.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentdouble import Emulator
from tests.real_targets.agents import INSTALL, has_both, names, serve, write
from tests.real_targets.agents.cases import CASES, Case
from tests.real_targets.agents.comparing import compare, unexplained
from tests.real_targets.agents.conversation import Conversation

IN_YAML = "'PLACE/root_agent.yaml': "
IMPORT = "ModuleNotFoundError: No module named 'nothing_of_that_name' (PLACE/agent.py:3)"
RAISED = "ValueError: a setting is missing (PLACE/agent.py:3)"
VEADK = "DOUBLECHECK_VEADK_PYTHON"
VEADK_SERVER = (
    "-m",
    "google.adk.cli",
    "api_server",
    "--port",
    "$PORT",
    "--session_service_uri=memory://",
)


@pytest.fixture(scope="module", params=[(), ("--state", "sqlite:///state.db")], ids=["", "kept"])
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """Yield the addresses of ``adk api_server`` and the double, in memory and with a database."""
    python = os.environ.get("DOUBLECHECK_ADK_PYTHON", "")
    if not python or not has_both(python):
        pytest.skip(f"DOUBLECHECK_ADK_PYTHON names no Python with both: {INSTALL}")
    folder: Path = tmp_path_factory.mktemp("agents")
    with serve(python, folder, request.param) as addresses:
        yield addresses


@pytest.mark.parametrize("case", [pytest.param(case, id=case.app) for case in CASES])
def test_agent_behaves_the_same_on_both(servers: tuple[str, str], case: Case) -> None:
    """Events, state, artifacts, memory and errors match, except for explained differences."""
    assert [] == list(map(str, unexplained(compare(case, *servers))))


def test_agents_have_cases() -> None:
    assert names() <= {case.app for case in CASES}


@pytest.mark.parametrize(
    ("app", "reason"),
    [
        ("broken_yaml", IN_YAML),
        ("wrong_yaml", IN_YAML),
        ("missing_part", IN_YAML),
        ("broken_import", IMPORT),
        ("raises_value_error", RAISED),
    ],
)
def test_load_error_names_reason_and_file(servers: tuple[str, str], app: str, reason: str) -> None:
    """Status 500 has them in its detail; other agents in the directory still run."""
    talk = Conversation(servers[1], app)
    talk.create()
    talk.run("hello")
    answer = talk.answers[-1]
    detail = re.sub(rf"[^ (']*/{app}/", "PLACE/", answer.body["detail"])

    assert 500 == answer.status
    assert detail.startswith(f"Failed to load agent {app!r}: {reason}")


@pytest.mark.skipif(VEADK not in os.environ, reason=f"{VEADK} names no Python that has veadk")
def test_veadk_agent_runs_code_in_its_double(tmp_path: Path) -> None:
    """The runtime is veadk's API server; run_code finds the sandbox by environment variables."""
    write(tmp_path)
    with Emulator() as double:
        url = double.runtimes.create(
            "coder",
            command=[os.environ[VEADK], "-W", "ignore", *VEADK_SERVER, "veadk"],
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
    assert ['"text": "42\\n"' in response for response in returned] == [True]
