from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from agentdouble.agents.agent import Agent, Message, Part
from agentdouble.agents.directory import AgentsDirectory
from agentdouble.errors import AgentDoubleError, AgentLoadError, AgentNotFoundError

pytestmark = pytest.mark.smoke

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


def test_applications_are_subdirectories_with_code(folder: Path) -> None:
    """API-16: sorted; not hidden ones, caches, files, or directories without an agent."""
    for name in ("zeta", "alpha_agent", ".hidden", "__pycache__"):
        write(folder, name, "")
    write(folder, "in_module", AGENT, module="agent")
    (folder / "data").mkdir()
    (folder / "file.py").write_text("")

    assert ["alpha_agent", "in_module", "zeta"] == AgentsDirectory(folder).names()


def test_an_agent_is_found_in_the_package_or_its_module(folder: Path) -> None:
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


def test_an_application_can_import_its_own_modules(folder: Path) -> None:
    """By their name and relative to it."""
    write(folder, "split_agent", "A = 'absolute'", module="one")
    write(folder, "split_agent", "R = 'relative'", module="two")
    source = "from split_agent.one import A\nfrom .two import R\n"
    source += "async def root_agent(message, session):\n    yield A\n"
    source += "root_agent.__doc__ = A + R\n"
    write(folder, "split_agent", source)

    assert "absoluterelative" == description(AgentsDirectory(folder), "split_agent")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("raise ValueError('bad')", r"ValueError: bad \(.*/broken_agent/__init__.py:1\)"),
        ("\nimport nothing_here", r"ModuleNotFoundError: No module .*/__init__.py:2\)"),
        ("def f(:", r"SyntaxError: .*/broken_agent/__init__.py:1\)"),
        ("import sys; sys.exit(3)", r"SystemExit: 3 \(.*/__init__.py:1\)"),
        ("root_agent = 5", r"root_agent of 'broken_agent' is int, and no agent"),
        ("async def root_agent(message):\n    yield 1", r"does not take \(message, session\)"),
        ("def root_agent(message, session):\n    return 1", r"is root_agent, and no agent"),
        ("async def root_agent(message, session):\n    return 1", r"is root_agent, and no agent"),
    ],
)
def test_an_application_that_does_not_load_is_refused_with_the_reason_and_the_place(
    folder: Path, source: str, why: str
) -> None:
    """With file and line of the user's own code; the others go on working."""
    write(folder, "broken_agent", source)
    write(folder, "working_agent", AGENT.format(text="works"))
    directory = AgentsDirectory(folder)

    with pytest.raises(AgentLoadError, match=why) as caught:
        directory.load("broken_agent")

    assert "broken_agent" == caught.value.app
    assert "works" == description(directory, "working_agent")
    assert ["broken_agent", "working_agent"] == directory.names()


@pytest.mark.parametrize("name", ["nothing", "a/b", "../x", "a b", "ü", "", ".", "a\n", "n" * 300])
def test_a_directory_without_an_application_is_not_found(folder: Path, name: str) -> None:
    """Nothing outside the directory is ever imported."""
    with pytest.raises(AgentNotFoundError):
        AgentsDirectory(folder).load(name)


def test_an_application_without_an_agent_is_not_found(folder: Path) -> None:
    """The error says where it was looked for."""
    write(folder, "no_agent", "x = 1")

    with pytest.raises(AgentNotFoundError, match=r"Searched in 'no_agent.agent.root_agent', "):
        AgentsDirectory(folder).load("no_agent")


@pytest.mark.parametrize("name", ["json", "httpx", "sqlite3"])
def test_the_name_of_another_module_is_refused(folder: Path, name: str) -> None:
    """Importing it would hide that module from everybody else."""
    write(folder, name, AGENT)

    with pytest.raises(AgentLoadError, match=f"another module of that name, .*{name}"):
        AgentsDirectory(folder).load(name)


def test_a_repaired_application_loads(folder: Path) -> None:
    """A failure is not remembered."""
    path = write(folder, "mended_agent", "raise ValueError")
    directory = AgentsDirectory(folder)
    with pytest.raises(AgentLoadError):
        directory.load("mended_agent")

    path.write_text(AGENT.format(text="mended"))

    assert "mended" == description(directory, "mended_agent")


@pytest.mark.parametrize(("reload", "expected"), [(True, "two"), (False, "one")])
def test_a_change_is_seen_with_reload(folder: Path, reload: bool, expected: str) -> None:
    """Of any of the application's files, also within one tick of the file system's clock."""
    write(folder, "changing_agent", "from changing_agent.said import TEXT\n" + AGENT)
    source = "\nroot_agent.__doc__ = TEXT\n"
    path = folder / "changing_agent" / "__init__.py"
    path.write_text(path.read_text() + source)
    said = write(folder, "changing_agent", "TEXT = 'one'", module="said")
    directory = AgentsDirectory(folder, reload=reload)
    before = description(directory, "changing_agent")

    stamp = said.stat().st_mtime
    said.write_text("TEXT = 'two'")
    os.utime(said, (stamp, stamp + 0.25))

    assert ("one", expected) == (before, description(directory, "changing_agent"))


def test_two_directories_can_have_an_application_of_one_name(tmp_path: Path) -> None:
    """Each gets its own."""
    for folder in ("one", "two"):
        write(tmp_path / folder, "same_agent", AGENT.format(text=folder))
    directories = [AgentsDirectory(tmp_path / folder) for folder in ("one", "two")]

    assert ["one", "two"] == [description(one, "same_agent") for one in directories]


def test_an_adapter_knows_other_frameworks_agents(folder: Path) -> None:
    """It is asked first."""
    write(folder, "strange_agent", "root_agent = 5")

    def adapt(root: object, app: str) -> Agent | None:
        async def run(message: object, session: object):  # type: ignore[no-untyped-def]
            yield "x"

        return Agent(f"{app}{root}", run) if root == 5 else None

    assert "strange_agent5" == AgentsDirectory(folder, adapters=[adapt]).load("strange_agent").name


def test_a_directory_that_does_not_exist_is_refused(folder: Path) -> None:
    """At once, by its path."""
    with pytest.raises(AgentDoubleError, match=r"There is no agents directory /.*/missing"):
        AgentsDirectory(folder / "missing")


def test_parts_have_their_kinds() -> None:
    """Text, bytes, calls and answers."""
    call = Part.of_call("f", {"a": 1})
    answer = Part.of_response(call, {"b": 2})
    data = Part({"inlineData": {"data": "+/8=", "mimeType": "x/y"}})

    assert ("hi", "ab") == (
        Part.of_text("hi").text,
        Message((Part.of_text("a"), data, Part.of_text("b"))).text,
    )
    assert (b"\xfb\xff", "x/y") == (data.data, data.mime_type)
    assert b"\xfb\xff" == Part.of_data(b"\xfb\xff", "x/y").data
    assert call.function_call is not None
    assert answer.function_response is not None
    assert call.function_call["id"] == answer.function_response["id"]
    assert ({"a": 1}, {"b": 2}) == (
        call.function_call["args"],
        answer.function_response["response"],
    )
    assert (None, None, None) == (call.text, call.data, call.mime_type)


begun, go_on = threading.Event(), threading.Event()
