from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from agentdouble import Emulator
from agentdouble.agents.agent import Agent
from agentdouble.agents.directory import AgentsDirectory
from agentdouble.errors import AgentDoubleError, AgentLoadError, AgentNotFoundError
from tests.agentdouble.api_server.wire import create, run, run_body, texts
from tests.agentdouble.calling import http

AGENT = '''
async def root_agent(message, session):
    """{text}"""
    yield "{text}"
'''


def write(folder: Path, name: str, source: str, module: str = "__init__") -> Path:
    path = folder / name / f"{module}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    return path


def description(directory: AgentsDirectory, name: str) -> str:
    return directory.load(name).description


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.mark.smoke
def test_applications_are_subdirectories_with_code(folder: Path) -> None:
    """API-16: sorted; no hidden ones, caches, files, or directories without an agent."""
    for name in ("zeta", "alpha_agent", ".hidden", "__pycache__"):
        write(folder, name, "")
    write(folder, "in_module", AGENT, module="agent")
    (folder / "data").mkdir()
    (folder / "file.py").write_text("")

    assert ["alpha_agent", "in_module", "zeta"] == AgentsDirectory(folder).names()


@pytest.mark.smoke
def test_agent_is_found_in_the_package_or_its_module(folder: Path) -> None:
    """``root_agent`` of the package, else of its module ``agent``."""
    write(folder, "in_package_one", AGENT.format(text="package"))
    write(folder, "in_module_one", "")
    write(folder, "in_module_one", AGENT.format(text="module"), module="agent")
    write(folder, "without_init_one", AGENT.format(text="bare"), module="agent")
    directory = AgentsDirectory(folder)

    assert ["package", "module", "bare"] == [
        description(directory, name)
        for name in ("in_package_one", "in_module_one", "without_init_one")
    ]


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise ValueError('bad')", r"ValueError: bad \(.*/broken_agent/__init__.py:1\)"),
        ("\nimport nothing_here", r"ModuleNotFoundError: No module .*/__init__.py:2\)"),
        ("def f(:", r"SyntaxError: .*/broken_agent/__init__.py:1\)"),
        ("import sys; sys.exit(3)", r"SystemExit: 3 \(.*/__init__.py:1\)"),
        ("root_agent = 5", r"root_agent of 'broken_agent' is int, not an agent"),
        ("async def root_agent(message):\n    yield 1", r"does not accept \(message, session\)"),
        ("def root_agent(message, session):\n    return 1", r"is root_agent, not an agent"),
        ("async def root_agent(message, session):\n    return 1", r"is root_agent, not an agent"),
    ],
)
def test_application_that_fails_to_load_is_refused_with_the_location(
    folder: Path, source: str, reason: str
) -> None:
    """File and line are in the user's code; the others keep working."""
    write(folder, "broken_agent", source)
    write(folder, "working_agent", AGENT.format(text="works"))
    directory = AgentsDirectory(folder)

    with pytest.raises(AgentLoadError, match=reason) as caught:
        directory.load("broken_agent")

    assert "broken_agent" == caught.value.app
    assert "works" == description(directory, "working_agent")
    assert ["broken_agent", "working_agent"] == directory.names()


@pytest.mark.smoke
@pytest.mark.parametrize("name", ["nothing", "a/b", "../x", "a b", "ü", "", ".", "a\n", "n" * 300])
def test_directory_without_an_application_is_not_found(folder: Path, name: str) -> None:
    """Nothing outside the directory is ever imported."""
    with pytest.raises(AgentNotFoundError):
        AgentsDirectory(folder).load(name)


@pytest.mark.smoke
@pytest.mark.parametrize("name", ["json", "httpx", "sqlite3"])
def test_name_of_another_module_is_refused(folder: Path, name: str) -> None:
    """Importing it would hide that module from other code."""
    write(folder, name, AGENT)

    with pytest.raises(AgentLoadError, match=f"the name of another module, .*{name}"):
        AgentsDirectory(folder).load(name)


@pytest.mark.smoke
@pytest.mark.parametrize(("reload", "expected"), [(True, "two"), (False, "one")])
def test_changes_are_seen_with_reload(folder: Path, reload: bool, expected: str) -> None:
    """To any of the application's files, also within one tick of the file system's clock."""
    write(folder, "changing_agent", "from changing_agent.said import TEXT\n" + AGENT)
    source = "\nroot_agent.__doc__ = TEXT\n"
    path = folder / "changing_agent" / "__init__.py"
    path.write_text(path.read_text() + source)
    module = write(folder, "changing_agent", "TEXT = 'one'", module="said")
    directory = AgentsDirectory(folder, reload=reload)
    before = description(directory, "changing_agent")

    stamp = module.stat().st_mtime
    module.write_text("TEXT = 'two'")
    os.utime(module, (stamp, stamp + 0.25))

    assert ("one", expected) == (before, description(directory, "changing_agent"))


@pytest.mark.smoke
def test_adapter_recognizes_other_frameworks_agents(folder: Path) -> None:
    """It takes precedence."""
    write(folder, "strange_agent", "root_agent = 5")

    def adapt(root: object, app: str) -> Agent | None:
        async def run(message: object, session: object):  # type: ignore[no-untyped-def]
            yield "x"

        return Agent(f"{app}{root}", run) if root == 5 else None

    assert "strange_agent5" == AgentsDirectory(folder, adapters=[adapt]).load("strange_agent").name


@pytest.mark.smoke
def test_missing_directory_is_refused(folder: Path) -> None:
    """At once, by its path."""
    with pytest.raises(AgentDoubleError, match=r"Agents directory not found: /.*/missing"):
        AgentsDirectory(folder / "missing")


begun, go_on = threading.Event(), threading.Event()


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
