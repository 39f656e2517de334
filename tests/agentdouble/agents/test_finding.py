"""Applications are found like ``adk`` finds them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from agentdouble import Emulator
from agentdouble.agents.directory import AgentsDirectory
from agentdouble.errors import AgentLoadError, AgentNotFoundError
from tests.agentdouble.agents.test_directory import AGENT, description, write
from tests.agentdouble.api_server.wire import create, run, run_body, texts
from tests.agentdouble.calling import http

ENVIRONMENT = """
import os

VALUE = os.environ.get({name!r})

async def root_agent(message, session):
    yield VALUE
root_agent.__doc__ = str(VALUE)
"""


def test_module_is_an_unlisted_application(tmp_path: Path) -> None:
    """As with ``adk``: a directory's helpers are modules beside its agents."""
    (tmp_path / "lonely_module.py").write_text(AGENT.format(text="alone"))
    directory = AgentsDirectory(tmp_path)

    assert "alone" == description(directory, "lonely_module")
    assert "alone" == description(AgentsDirectory(tmp_path), "lonely_module")
    assert [] == directory.names()


@pytest.mark.parametrize("file", ["agent.py", "root_agent.yaml"])
def test_directory_of_one_agent_is_the_only_application(tmp_path: Path, file: str) -> None:
    """``adk api_server my_agent`` serves it under the directory's name."""
    alone = tmp_path / "alone_agent"
    write(tmp_path, "beside_agent", AGENT.format(text="beside"))
    write(alone, "part_of_it", "")
    (alone / "__init__.py").write_text(AGENT.format(text="alone"))
    (alone / file).write_text("")
    directory = AgentsDirectory(alone)

    assert ["alone_agent"] == directory.names()
    assert "alone" == description(directory, "alone_agent")
    with pytest.raises(AgentNotFoundError, match="only 'alone_agent' is accessible"):
        directory.load("beside_agent")


def test_agent_in_yaml_needs_google_adk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is listed; the others work without the package."""
    # not google.adk, because another test may have imported the loader itself
    monkeypatch.setitem(sys.modules, "google.adk.agents.config_agent_utils", None)
    (tmp_path / "yaml_only").mkdir()
    (tmp_path / "yaml_only" / "root_agent.yaml").write_text("name: a")
    write(tmp_path, "beside_yaml", AGENT.format(text="beside"))
    directory = AgentsDirectory(tmp_path)

    with pytest.raises(AgentLoadError, match=r"root_agent.yaml' needs .*pip install google-adk"):
        directory.load("yaml_only")
    assert ["beside_yaml", "yaml_only"] == directory.names()
    assert ["python", "yaml"] == [directory.language(name) for name in directory.names()]
    assert "beside" == description(directory, "beside_yaml")


def test_agent_s_env_file_is_read_before_its_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nearest parent's; the process's variables take precedence; the end restores all."""
    monkeypatch.setenv("AD_TEST_GIVEN", "given")
    monkeypatch.delenv("AD_TEST_SET", raising=False)
    (tmp_path / ".env").write_text("AD_TEST_SET=above\nAD_TEST_GIVEN=file\n")
    for name, variable in (("own_env", "AD_TEST_SET"), ("no_env", "AD_TEST_GIVEN")):
        write(tmp_path / "agents", name, ENVIRONMENT.format(name=variable))
    (tmp_path / "agents" / "own_env" / ".env").write_text('export AD_TEST_SET="its own" # x\n')

    with Emulator(agents=tmp_path / "agents") as double:
        answers = []
        for app in ("own_env", "no_env"):
            create(double.url, "ann", {"sessionId": "s1"}, app)
            answers += texts(run(double.url, run_body("ann", app=app)).json())
        during = os.environ["AD_TEST_SET"]

    assert (["its own", "given"], "above") == (answers, during)
    assert "AD_TEST_SET" not in os.environ
    assert "given" == os.environ["AD_TEST_GIVEN"]


def test_detailed_list_names_the_language(tmp_path: Path) -> None:
    """Applications that fail to load are omitted."""
    write(tmp_path, "listed_agent", AGENT.format(text="listed"))
    write(tmp_path, "broken_listed", "raise ValueError")
    with Emulator(agents=tmp_path) as double:
        names = http.get(f"{double.url}/list-apps").json()
        (described,) = http.get(f"{double.url}/list-apps?detailed=true").json()["apps"]
        info = http.get(f"{double.url}/apps/listed_agent/app-info")

    assert ["broken_listed", "listed_agent"] == names
    assert ("listed_agent", "python", False) == (
        described["rootAgentName"],
        described["language"],
        described["isComputerUse"],
    )
    assert (400, {"detail": "Root agent is not an LlmAgent"}) == (info.status_code, info.json())
