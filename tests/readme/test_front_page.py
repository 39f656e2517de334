"""The front page: its install commands, recipes, workflow file and picture."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from agentdouble import Emulator, __version__
from agentdouble.processes.isolation import MEASURES
from doublecheck.cli import app
from notebooks.pictures import transcript
from notebooks.pictures.drawing import text_of
from tests.readme.consoles import bash, commands_of
from tests.readme.pages import DOUBLE, FRONT, HARNESS, ROOT, block, blocks, read

pytestmark = pytest.mark.once

COMMANDS = [block(FRONT, "sh", shell.text) for shell in blocks(FRONT, "sh")]
APPLICATION = block(FRONT, "python", "# my_agent.py")
ITS_TEST = block(FRONT, "python", "# test_answers.py")
EXEC = block(FRONT, "console", "$ agentdouble exec")
STAGING = block(FRONT, "toml", "# pyproject.toml")
CHECKED = block(FRONT, "console", "$ export STAGING_ACCESS_KEY")


def test_install_commands_create_an_environment() -> None:
    """One runs the demo, the other the tests."""
    demo, tests = COMMANDS

    for command in (demo, tests):
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install")
        assert command.count("\n") == 1
    assert demo.endswith(" && .venv/bin/agentdouble demo\n")
    assert tests.endswith(" && .venv/bin/python -m pytest\n")


@pytest.mark.slow
def test_exec_passes_the_double_to_a_program(tmp_path: Path) -> None:
    """The program prints the result of its code in the sandbox."""
    program, _ = commands_of(EXEC)

    assert '"text/plain": "42"' in bash(program.command, tmp_path)


@pytest.mark.slow
def test_exec_serves_an_application_to_its_test(tmp_path: Path) -> None:
    """The recipe needs no other files."""
    (tmp_path / "my_agent.py").write_text(APPLICATION)
    (tmp_path / "test_answers.py").write_text(ITS_TEST)
    _, tested = commands_of(EXEC)

    assert "1 passed" in bash(tested.command, tmp_path)


@pytest.mark.slow
def test_commands_check_a_configured_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target is a double that stands in for a live platform."""
    monkeypatch.chdir(tmp_path)
    export, *others = commands_of(CHECKED)
    commands = {command.words[1]: command.words for command in others}
    narrowed = {"run": ["-k", "PRB-01"], "twin": [], "calibrate": ["--only", "U-PROBE-BODIES"]}

    with Emulator() as double:
        table = STAGING.replace("t-1", "t-sandbox")
        Path("pyproject.toml").write_text(re.sub(r"https://\w+\.example\.com", double.url, table))
        for name, value in double.environment().items():
            if (variable := name.replace("PLATFORM", "STAGING")) in export.command:
                monkeypatch.setenv(variable, value)
        results = [
            CliRunner().invoke(app, [*commands[name][1:], *words])
            for name, words in narrowed.items()
        ]

    assert [0, 0, 0] == [run.exit_code for run in results], [run.output for run in results]
    written = {path.name for path in tmp_path.iterdir()}
    assert {"report.html", "twin.html", "profile.toml"} <= written


AGAIN = "`python -m notebooks.pictures` draws what a run prints today."


@pytest.mark.slow
def test_picture_shows_the_demo_output() -> None:
    """Ports, times and the size of the plot may differ."""
    text = transcript.normalize(text_of(transcript.PICTURE.read_text("utf-8")))

    assert text == transcript.normalize(transcript.excerpt(transcript.run())), AGAIN


def test_picture_is_on_the_page_and_self_contained() -> None:
    """It loads no font, style or image from another address."""
    svg = transcript.PICTURE.read_text("utf-8")

    assert f"]({transcript.PICTURE.relative_to(ROOT)})" in read(FRONT)
    assert set() == set(re.findall(r"url\((?!#)|@import|@font-face|href=", svg))


WORKFLOW = block(HARNESS, "yaml", "# .github/workflows/tests.yml")
NAMESPACES_STEP = block(HARNESS, "yaml", "      - run: sudo sysctl")
TESTS = block(FRONT, "python", "# test_my_agent.py")
INSTALL = block(FRONT, "console", "$ pip install '/path/to/agentdouble[emulator]' pytest")


@pytest.fixture
def steps() -> list[dict[str, Any]]:
    (job,) = yaml.safe_load(WORKFLOW)["jobs"].values()
    return list(job["steps"])


@pytest.mark.slow
def test_workflow_steps_pass(steps: list[dict[str, Any]], tmp_path: Path) -> None:
    """The folders match its checkouts; the packages are those of this environment."""
    places = [
        step["with"]["path"] for step in steps if step.get("uses", "").startswith("actions/ch")
    ]
    project, clone = (tmp_path / place for place in places)
    project.mkdir()
    (project / "test_my_agent.py").write_text(TESTS)
    clone.symlink_to(ROOT)
    install, *others = [step for step in steps if "run" in step]

    outputs = [bash(step["run"], tmp_path / step.get("working-directory", "")) for step in others]

    assert (clone / "pyproject.toml").exists()
    assert install["run"].startswith(f"pip install './{clone.name}[")
    assert "1 passed" in outputs[-1]
    assert (project / "report.xml").exists()


def test_manual_install_matches_the_workflow(steps: list[dict[str, Any]]) -> None:
    """Only the path of the clone differs, and the project's own requirements are added."""
    install, _ = commands_of(INSTALL)
    (of_github,) = (step["run"] for step in steps if "pip install" in step.get("run", ""))

    *words, option, file = shlex.split(of_github)[2:]
    assert install.words[2:] == [word.replace("./", "/path/to/") for word in words]
    assert ("-r", "project/requirements.txt") == (option, file)


def test_the_workflow_pins_this_version(steps: list[dict[str, Any]]) -> None:
    (tag,) = (step["with"]["ref"] for step in steps if "ref" in step.get("with", {}))

    assert f"v{__version__}" == tag


def test_the_workflow_runs_a_python_that_ci_runs(steps: list[dict[str, Any]]) -> None:
    """The table of the page on installing says which versions that are."""
    (python,) = (step["with"] for step in steps if "python-version" in step.get("with", {}))
    (said,) = re.findall(
        rf"^\| {re.escape(python['python-version'])} \| \S+ \| (.*) \|$", read(DOUBLE), re.M
    )

    assert not said.startswith("not run")


def test_the_workflow_caches_what_it_installs_and_keeps_the_report(
    steps: list[dict[str, Any]],
) -> None:
    """The cache depends on the files that pip reads; the report is the one that pytest writes."""
    (cached,) = (step["with"] for step in steps if "cache" in step.get("with", {}))
    *_, tested, kept = steps
    (written,) = re.findall(r"--junit-xml=(\S+)", tested["run"])

    assert ["agentdouble/pyproject.toml", "project/requirements.txt"] == cached[
        "cache-dependency-path"
    ].split()
    assert f"{tested['working-directory']}/{written}" == kept["with"]["path"]


def test_the_step_that_allows_namespaces_is_the_remedy_of_the_doctor() -> None:
    (step,) = yaml.safe_load(NAMESPACES_STEP)

    assert step["run"].removeprefix("sudo ") in MEASURES["files"][1]


def test_the_first_screen_has_a_sentence_a_test_and_two_commands() -> None:
    """A reader sees at once what it is, how it looks, and how to begin."""
    head, *_ = read(FRONT).partition("\n## ")
    _, sentence, *_ = head.split("\n\n")
    kinds = [shown.language for shown in blocks(FRONT) if shown.text in head]

    assert (1, ["python", "console"]) == (len(re.findall(r"\.(?:\s|$)", sentence)), kinds)
    assert 2 == len(list(commands_of(INSTALL)))
    assert 3 == len(re.findall("^- ", head, re.M))
    assert "platform_clock.advance(minutes=30)" in TESTS
