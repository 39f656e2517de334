"""The examples on the harness's page, and the real clients on all pages."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agentdouble import Emulator
from agentdouble.apps import simple, simple_responses
from agentdouble.core import running_doubles
from doublecheck.cli import app
from doublecheck.contracts.clauses import clauses
from doublecheck.run import pytest_run
from doublecheck.target.config_files import read_project
from doublecheck.target.facts import BY_KEY
from tests.readme.consoles import bash, commands_of, pytest_in
from tests.readme.pages import DOUBLE, FRONT, HARNESS, ROOT, block, read

pytestmark = pytest.mark.once

TESTS = {
    f"test_my_{name}.py": block(HARNESS, "python", f"# test_my_{name}.py")
    for name in (
        "sandbox",
        "client",
        "retries",
        "backoff",
        "clock",
        "data",
        "model",
        "agent",
        "sales",
        "names",
    )
}
APPLICATION = {
    "my_agent.py": block(FRONT, "python", "# my_agent.py"),
    "conftest.py": block(HARNESS, "python", "# conftest.py"),
    "test_my_application.py": block(HARNESS, "python", "# test_my_application.py"),
}
CALIBRATED = block(HARNESS, "console", "$ doublecheck calibrate")
KEYED = block(HARNESS, "toml", "# pyproject.toml\n[tool.doublecheck.targets.keyed]")
OF_ADK = block(HARNESS, "toml", "# pyproject.toml\n[tool.doublecheck.targets.adk]")
CHECKED_WITH_KEY = block(HARNESS, "console", "$ AGENT_KEY=")
SMALLEST = block(HARNESS, "text", "INV-04 (must)").partition("\n\n")[0]


@pytest.mark.slow
@pytest.mark.parametrize(("files", "count"), [(TESTS, 15), (APPLICATION, 2)], ids=["own", "app"])
def test_example_tests_pass(tmp_path: Path, files: dict[str, str], count: int) -> None:
    """Without configuration; or with the override that serves the front page's application."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    assert f"{count} passed" in pytest_in(tmp_path)


def test_pages_count_the_clauses() -> None:
    """Of all groups, and of those that the double passes."""
    checks, implementations = (
        (ROOT / "harness" / "docs" / f"{page}.md").read_text("utf-8")
        for page in ("contract-checks", "implementations")
    )
    groups = Counter(id_.partition("-")[0] for id_ in clauses())

    passed = re.findall(r"^\| .*\((\w+)\) \| (\d+) passed \|", implementations, re.M)
    assert f"the specification's {len(clauses())} clauses" in " ".join(checks.split())
    assert {**groups} == {group: int(count) for group, count in passed}


@pytest.mark.parametrize(("key", "codes"), [("let-me-in", {0}), ("another", {1, 3, 5})])
def test_a_target_has_an_api_key(
    key: str, codes: set[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable that its table names holds the key."""
    monkeypatch.chdir(tmp_path)
    (command,) = commands_of(CHECKED_WITH_KEY)
    variable, *words = command.words

    with Emulator(api_key="let-me-in") as double:
        table = KEYED.replace("https://agent.example.com", double.url)
        (tmp_path / "pyproject.toml").write_text(table)
        monkeypatch.setenv(variable.partition("=")[0], key)
        ended = CliRunner().invoke(app, [*words[1:], "-k", "PRB-01"])

    assert ended.exit_code in codes, ended.output


def test_the_page_lists_the_keys_of_a_target() -> None:
    page = (ROOT / "harness" / "docs" / "contract-checks.md").read_text("utf-8")
    table = page.partition("## The table of a target")[2].partition("## ")[0]

    assert set(BY_KEY) <= set(re.findall(r"`(\w+)`", table))


def test_a_server_of_adk_is_a_target(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(OF_ADK)

    project = read_project(tmp_path / "pyproject.toml")

    assert project is not None
    assert {"api_server"} == project.targets["adk"].values["offers"]


def test_calibrate_settles_an_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command writes the answer to a profile."""
    monkeypatch.chdir(tmp_path)
    words = next(commands_of(CALIBRATED)).words

    with Emulator() as double:
        for name, value in double.environment().items():
            monkeypatch.setenv(name, value)
        words[words.index("--url") + 1] = double.url
        ended = CliRunner().invoke(app, words[1:])

    assert 0 == ended.exit_code, ended.output
    assert 'U-SESSION-DUPLICATE = "409"' in (tmp_path / "profile.toml").read_text()


@pytest.mark.slow
def test_failure_is_reported_with_the_smallest_input(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The broken platform splits lines where ``str.splitlines`` does."""
    complete = simple_responses.result
    monkeypatch.setattr(
        simple, "result", lambda value: complete("\n".join(str(value).split("\u2028")))
    )

    pytest_run.run(["-k", "INV-04"], verbose=True, modules=["test_invocation"])

    lines = capfd.readouterr().err.splitlines()
    for line in SMALLEST.splitlines():
        assert line in lines


SHOWN = (
    block(FRONT, "console", "$ python3 -m venv clients"),
    block(DOUBLE, "console", "$ agentdouble serve --tls"),
    block(DOUBLE, "console", '$ eval "$(agentdouble env --for agentkit)"'),
)
COMMANDS = [command for text in SHOWN for command in commands_of(text)]
AGENTKIT = "DOUBLECHECK_AGENTKIT_PYTHON"


@pytest.mark.slow
def test_shell_evaluates_the_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shell runs ``eval`` on the output of ``agentdouble env``."""
    evaluated = [command.command for command in COMMANDS if command.command.startswith("eval")]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    with Emulator() as double, running_doubles.announced(double.connection):
        lines = bash(" && ".join([*evaluated, "env"]), tmp_path).splitlines()

    host = double.url.removeprefix("http://")
    assert {f"VOLCENGINE_AGENTKIT_HOST={host}", f"AGENTKIT_TOOL_HOST={host}"} <= set(lines)


def test_documented_variables_match_the_environment() -> None:
    """Each client has the names on its line and those on the shared line."""
    by_tool = {
        client: set(re.findall(r"`(\w+)`", names))
        for client, names in re.findall(
            r"^\| (agentkit|veadk|both) \| (.*) \|$", read(DOUBLE), re.M
        )
    }

    (others,) = re.findall(r"^\| agentkit, for other services.* of (.*) \|$", read(DOUBLE), re.M)
    for name in re.findall(r"`(\w+)`", others):
        by_tool["agentkit"] |= {f"VOLCENGINE_{name}_{end}" for end in ("HOST", "SCHEME")}

    with Emulator() as double:
        environments = {tool: set(double.environment(tool)) for tool in ("agentkit", "veadk")}

    assert environments == {tool: by_tool[tool] | by_tool["both"] for tool in environments}


@pytest.mark.skipif(AGENTKIT not in os.environ, reason=f"{AGENTKIT} names no Python with agentkit")
def test_real_client_works(tmp_path: Path) -> None:
    """The commands run verbatim in an environment that has the client."""
    runs = dict.fromkeys(shell.command for shell in COMMANDS if "bin/agentkit " in shell.command)
    (tmp_path / "clients").symlink_to(Path(os.environ[AGENTKIT]).parents[1])
    (tmp_path / "a.txt").write_text("hi")

    with Emulator() as double:
        variables = {**double.environment("agentkit"), "HOME": str(tmp_path)}
        outputs = {command: bash(command, tmp_path, **variables) for command in runs}

    assert any("t-sandbox" in output for output in outputs.values())
    assert ["hi" in output for command, output in outputs.items() if "echo hi" in command] == [True]
