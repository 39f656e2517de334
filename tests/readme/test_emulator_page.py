"""The double's page: sandbox, settings and runtimes; and the commands of all pages."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from agentdouble import Emulator, Settings
from agentdouble.sandbox.browser import chromium
from doublecheck import Platform, Target
from tests import machine
from tests.readme.consoles import Shown, commands_of, forget, known_options, pytest_in, run, unknown
from tests.readme.pages import DOUBLE, FRONT, PAGES, block, blocks, read

pytestmark = pytest.mark.once

JAVASCRIPT = block(DOUBLE, "python", "# test_my_javascript.py")
BROWSER = block(DOUBLE, "python", "# test_my_browser.py")
SLEEPER = block(DOUBLE, "python", "# test_my_sleeper.py")
EXPIRED = block(DOUBLE, "python", "# test_my_expired_session.py")
START = block(DOUBLE, "python", "# test_my_start.py")
SETTINGS = block(DOUBLE, "toml", "# agentdouble.toml")


@pytest.mark.slow
def test_examples_of_sessions_pass(tmp_path: Path) -> None:
    """The browser example runs only where Chromium is installed, and always in .ci/run."""
    (tmp_path / "test_my_javascript.py").write_text(JAVASCRIPT)
    (tmp_path / "test_my_sleeper.py").write_text(SLEEPER)
    (tmp_path / "test_my_expired_session.py").write_text(EXPIRED)
    (tmp_path / "test_my_start.py").write_text(START)
    with_a_browser = machine.REQUIRE_ALL in os.environ or chromium.find(None) is not None
    if with_a_browser:
        (tmp_path / "test_my_browser.py").write_text(BROWSER)

    assert f"{4 + with_a_browser} passed" in pytest_in(tmp_path)


def test_settings_file_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its unknown and its access key are accepted."""
    (tmp_path / "agentdouble.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)

    settings = Settings.load()

    assert {"U-TTL-EXTENDS": "sliding"} == settings.unknowns
    assert ["AKLTreader"] == [key.access_key for key in settings.keys]


ENVIRONMENT = block(DOUBLE, "console", "$ agentdouble call UpdateTool ToolId=t-sandbox Envs")


@pytest.mark.slow
def test_sessions_have_their_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session's own win over those of its tool; bash and JavaScript see them, too."""
    of_the_tool, other_tool, own = (command.command for command in commands_of(ENVIRONMENT))

    with Emulator() as double, Platform(Target.of(double)) as platform:
        for name, value in double.environment().items():
            monkeypatch.setenv(name, value)
        run(of_the_tool, double.url)
        painter = json.loads(run(other_tool, double.url))["ToolId"]
        run(own, double.url)
        (session,) = platform.sandboxes()
        boxes = [
            platform.sandbox(instance_id=session.session_id),
            platform.sandbox("s2"),
        ]
        with Platform(replace(Target.of(double), tool_id=painter)) as elsewhere:
            colours = [box.run("import os; os.environ['COLOUR']").text for box in boxes]
            colours.append(elsewhere.run_code("import os; os.environ['COLOUR']").text)
            shown = boxes[1].exec_bash("echo $COLOUR").stdout
            script = boxes[1].run("process.env.COLOUR", "javascript")

    assert ["'green'", "'red'", "'blue'"] == colours
    assert ("red\n", '"red"') == (shown, script.text)


LOG_LINE = block(DOUBLE, "text", "17:03:21  POST /invoke 200")
LOGGING = block(DOUBLE, "python", "import logging\n")
REQUEST = """
import agentdouble, httpx
with agentdouble.Emulator() as double:
    httpx.post(double.url + "/invoke", json={"prompt": "1"})
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prepare", "line"),
    [
        ("from agentdouble.cli import serving; serving.log_to_terminal(quiet=False)", LOG_LINE),
        (LOGGING, "INFO agentdouble.journal.entries POST /invoke 200, 3.1 ms"),
    ],
    ids=["serve", "emulator"],
)
def test_requests_are_logged(prepare: str, line: str) -> None:
    """To stderr, in the form of the page; the numbers differ."""
    command = [sys.executable, "-c", f"{prepare}\n{REQUEST}"]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)

    assert _without_numbers(line.strip()) in map(_without_numbers, ran.stderr.splitlines())


def _without_numbers(line: str) -> str:
    return re.sub(r"\d+[.:]\d[\d:]*", "0", line)


MODEL = block(DOUBLE, "toml", "# model.toml")
ASK_MODEL = block(DOUBLE, "console", '$ eval "$(agentdouble env)" && eval')


@pytest.mark.needs("curl")
def test_model_answers_by_script(tmp_path: Path) -> None:
    """The command on the page gets the answer of the script in the settings file."""
    (tmp_path / "model.toml").write_text(MODEL)
    ask = list(commands_of(ASK_MODEL))[1].command.replace("Hello", "The weather?")

    with Emulator(settings=Settings.load(tmp_path / "model.toml", port=0)) as double:
        variables = {**os.environ, **double.environment("model")}
        answer = subprocess.run(["sh", "-c", ask], env=variables, capture_output=True, text=True)

    message = json.loads(answer.stdout)["choices"][0]["message"]
    assert "Sunny." == message["content"]


MY_AGENT = block(FRONT, "python", "# my_agent.py")
RUNTIMES = block(DOUBLE, "toml", "# runtimes.toml")
DECLARED = block(DOUBLE, "console", "$ agentdouble serve --config runtimes")
CHANGED = block(DOUBLE, "console", "$ agentdouble call ListRuntimes")


@pytest.mark.slow
def test_runtimes_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings file hosts the page's application, and actions change it."""
    forget(monkeypatch)
    (tmp_path / "runtimes.toml").write_text(RUNTIMES)
    (tmp_path / "my_agent.py").write_text(MY_AGENT)
    monkeypatch.chdir(tmp_path)

    with Emulator(settings=Settings.load(Path("runtimes.toml"), port=0)) as double:
        for name, value in double.environment().items():
            monkeypatch.setenv(name, value)
        outputs = [run(command.command, double.url) for command in list(commands_of(DECLARED))[1:]]
        listing, *changes = (command.command for command in commands_of(CHANGED))
        runtimes = json.loads(run(listing, double.url))["AgentKitRuntimes"]
        (id_,) = [runtime["RuntimeId"] for runtime in runtimes if runtime["Name"] == "files"]
        answers = [json.loads(run(change.replace("r-...", id_), double.url)) for change in changes]

    assert ['"42\\n"', MY_AGENT] == outputs
    assert [id_] * 3 == [answer["RuntimeId"] for answer in answers]


OURS = ("agentdouble", "doublecheck", "pytest")
PIP = ("pip install", "clients/bin/pip install")
MAKING_READY = (*PIP, "python3 -m venv", ". .venv", "jupyter lab")


def commands() -> Iterator[tuple[str, Shown]]:
    for page in PAGES:
        for example in blocks(page, "console"):
            yield from ((str(example), command) for command in commands_of(example.text))


def test_commands_and_options_exist(pytestconfig: pytest.Config) -> None:
    """This covers agentdouble, doublecheck and pytest with its plugin, also in ``$(...)``."""
    options = known_options(pytestconfig)
    own_commands = [
        (place, words) for place, cmd in commands() for words in _all_words(cmd) if words[0] in OURS
    ]

    wrong = [(place, words, unknown(words, options)) for place, words in own_commands]

    assert ([], True) == ([row for row in wrong if row[2]], len(own_commands) > 40)


def _all_words(command: Shown) -> Iterator[list[str]]:
    yield command.words
    for inner in re.findall(r"\$\(([^$]*?)\)", command.command):
        yield inner.split()
    if "--" in command.words:
        yield command.words[command.words.index("--") + 1 :]


def test_extras_exist() -> None:
    extras = set(metadata("agentdouble").get_all("Provides-Extra") or ())
    named = re.findall(r"agentdouble\[([\w,]+)\]", "".join(map(read, PAGES)))

    assert len(named) > 5
    assert set() == {extra for value in named for extra in value.split(",")} - extras


def test_pip_arguments_are_valid_requirements() -> None:
    lines = [
        word.replace("/path/to/", "")
        for _, command in commands()
        for part in command.command.split("&&")
        if "pip install" in part
        for word in shlex.split(part)[2:]
    ]

    assert {"agentdouble", "agentkit-sdk-python"} <= {Requirement(line).name for line in lines}


def made_ready(command: Shown) -> bool:
    """Return whether a command only creates an environment or opens JupyterLab."""
    return all(part.strip().startswith(MAKING_READY) for part in command.command.split("&&"))
