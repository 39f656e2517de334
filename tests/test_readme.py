"""What the README shows is run here, word for word."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from agentdouble import Emulator, Settings
from agentdouble.apps.loading import load
from agentdouble.cli.app import app as agentdouble_app
from agentdouble.sandbox.browser import chromium
from doublecheck.cli.app import app
from doublecheck.configuration.plan import Said, plan

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


def _block(language: str, start: str) -> str:
    found = [block for block in _blocks(language) if block.startswith(start)]
    assert len(found) == 1
    return found[0]


def test_there_are_two_commands_for_a_fresh_machine() -> None:
    """One ends with the demo, one passes the tests, and each makes its own environment."""
    demo, tests = _blocks("sh")

    for command in (demo, tests):
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install")
        assert command.count("\n") == 1
    assert demo.endswith(" && .venv/bin/agentdouble demo\n")
    assert tests.endswith(" && .venv/bin/python -m pytest\n")


def test_the_application_answers_in_the_double(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The README's own application runs the code of its prompt."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "my_agent", sys)  # taken away again afterwards
    file = tmp_path / "my_agent.py"
    file.write_text(_block("python", "# my_agent.py"))

    with Emulator(load(f"{file}:app")) as double:
        answer = httpx.post(
            f"{double.url}/invoke",
            headers={"user_id": "ann", "session_id": "s1"},
            content='{"prompt": "print(6 * 7)"}',
            timeout=30,
        )

    assert "42\n" == answer.json()


def test_the_a2a_application_answers_in_the_double(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The README's own executor says it louder, and its turn is ended for it."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "my_a2a", sys)  # taken away again afterwards
    file = tmp_path / "my_a2a.py"
    file.write_text(_block("python", "# my_a2a.py"))
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}

    with Emulator(load(f"{file}:app")) as double:
        answer = httpx.post(
            f"{double.url}/message:send",
            headers={"A2A-Version": "1.0"},
            json={"message": message},
            timeout=30,
        )

    task = answer.json()["task"]
    assert ("TASK_STATE_COMPLETED", [{"text": "HELLO"}]) == (
        task["status"]["state"],
        task["artifacts"][0]["parts"],
    )


def test_the_tests_pass(tmp_path: Path) -> None:
    """The README's own tests pass in a folder without any configuration."""
    for name in ("agent", "client", "javascript", "retries"):
        (tmp_path / f"test_my_{name}.py").write_text(_block("python", f"# test_my_{name}.py"))

    assert "7 passed" in _pytest(tmp_path)


def test_the_test_of_the_browser_passes(tmp_path: Path) -> None:
    """The README's own page is written on."""
    if "CI" not in os.environ and chromium.find(None) is None:
        pytest.skip(f"needs Chromium: {chromium.INSTALL}")
    (tmp_path / "test_my_browser.py").write_text(_block("python", "# test_my_browser.py"))

    assert "1 passed" in _pytest(tmp_path)


def test_the_tests_of_an_application_pass(tmp_path: Path) -> None:
    """The README's override serves the README's application."""
    for name in ("my_agent.py", "conftest.py", "test_my_application.py"):
        (tmp_path / name).write_text(_block("python", f"# {name}"))

    assert "1 passed" in _pytest(tmp_path)


def test_the_test_of_an_agent_passes(tmp_path: Path) -> None:
    """The README's agent is found in its directory, and its test passes."""
    package = tmp_path / "agents" / "greeter"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(_block("python", "# agents/greeter/__init__.py"))
    (tmp_path / "test_greeter.py").write_text(_block("python", "# test_greeter.py"))
    (tmp_path / "conftest.py").write_text(_conftest("agents"))

    assert "1 passed" in _pytest(tmp_path)


def test_the_test_of_tools_passes(tmp_path: Path) -> None:
    """The README's tools are listed and called."""
    for name in ("my_tools.py", "test_my_tools.py"):
        (tmp_path / name).write_text(_block("python", f"# {name}"))
    (tmp_path / "conftest.py").write_text(_conftest("my_tools"))

    assert "1 passed" in _pytest(tmp_path)


def test_the_services_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The README's services print an access record of the shape that it shows."""
    (tmp_path / "my_tools.py").write_text(_block("python", "# my_tools.py"))
    (tmp_path / "petstore.json").write_text(json.dumps(_PETSTORE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "my_tools", sys)  # taken away again afterwards
    del sys.modules["my_tools"]

    exec(_block("python", "# my_services.py"), {})

    made = re.sub(r"Bearer [\w-]{43}", "Bearer <its key>", capsys.readouterr().out)
    (shown,) = _blocks("json")
    assert json.loads(shown) == json.loads(re.sub(r":\d+/mcp", ":8000/mcp", made))


_PETSTORE = {
    "swagger": "2.0",
    "info": {"title": "pets", "version": "1"},
    "host": "127.0.0.1:9001",
    "schemes": ["http"],
    "paths": {"/pets": {"get": {"operationId": "pets", "responses": {"200": {"description": ""}}}}},
}


def _conftest(named: str) -> str:
    """Return a conftest with the README's PlatformConfig that names something."""
    (config,) = (
        one for one in re.findall(r"^with `(PlatformConfig\(.*\))`", README, re.M) if named in one
    )
    return (
        "import pytest\nfrom doublecheck import PlatformConfig\n\n"
        "@pytest.fixture(scope='session')\ndef platform_config():\n"
        f"    return {config}\n"
    )


def _pytest(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_notebook_lines_run() -> None:
    """The README's lines for a notebook run as they stand."""
    exec(_block("python", "import doublecheck"), {})


def test_the_settings_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's choice among the unknowns is one that can be made."""
    (tmp_path / "agentdouble.toml").write_text(_block("toml", "# agentdouble.toml"))
    monkeypatch.chdir(tmp_path)

    assert Settings.load().unknowns == {"U-TTL-EXTENDS": "sliding"}


def test_the_runtimes_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's settings file hosts the README's application, and its commands make another."""
    (tmp_path / "runtimes.toml").write_text(_block("toml", "# runtimes.toml"))
    (tmp_path / "my_agent.py").write_text(_block("python", "# my_agent.py"))
    monkeypatch.chdir(tmp_path)

    with Emulator(settings=Settings.load(Path("runtimes.toml"), port=0)) as double:
        for name, value in double.environment().items():
            monkeypatch.setenv(name, value)
        said = [
            answer
            for start in ("$ agentdouble serve --config runtimes", "$ agentdouble runtime create")
            for answer in _answers(_block("console", start), double.url)
        ]

    source = (tmp_path / "my_agent.py").read_text()
    address = f"{double.url}/runtimes/pages\n"
    versions = [f"Version {number} is in force.\n" for number in (2, 1)]
    assert ['"42\\n"', source, address, source, *versions] == said[:6]
    assert ["address     " + address in said[6], "/my_agent.py" in said[7]] == [True, True]
    assert said[8].endswith(" is deleted.\n")


def _answers(block: str, url: str) -> list[str]:
    """Return what the commands of a block print, put to the double at ``url``."""
    commands = re.findall(
        r"^\$ ((?:.*\\\n)*.*)$", block.replace("http://127.0.0.1:8000", url), re.M
    )
    return [_printed(one, url) for one in commands if not one.startswith("agentdouble serve")]


def _printed(command: str, url: str) -> str:
    """Run one of these commands here: a Python for each would take seconds."""
    inner = re.search(r"\$\((agentdouble .*?)\)", command)
    if inner is not None:
        command = command.replace(inner[0], _printed(inner[1], url).strip())
    program, *words = shlex.split(command.replace("\\\n", ""))
    if program == "curl":
        return _curled(words)
    done = CliRunner().invoke(agentdouble_app, [*words, "--url", url])
    assert 0 == done.exit_code, (command, done.output, done.exception)
    return done.stdout


def _curled(words: list[str]) -> str:
    options = list(zip(words[1::2], words[2::2], strict=True))
    headers = dict(value.split(": ") for option, value in options if option == "-H")
    body = dict(options).get("-d")
    method = "GET" if body is None else "POST"
    answer = httpx.request(method, words[0], headers=headers, content=body, timeout=60)
    assert 200 == answer.status_code, answer.text
    return answer.text


def test_a_targets_place_is_read(tmp_path: Path) -> None:
    """The README's target of a project is the one that its name chooses."""
    project = tmp_path / "pyproject.toml"
    project.write_text(_block("toml", "# pyproject.toml"))

    found = plan(Said({}, project=project, spelled=str), "staging")

    assert ("live", "https://agent.example.com") == (found.kind, found.value("url"))


def test_what_nobody_knows_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's commands settle an unknown, and find a double to be like another."""
    monkeypatch.chdir(tmp_path)
    shown = [line for block in _blocks("console") for line in block.splitlines()]
    lines = [line for line in shown if re.match(r"\$ doublecheck (calibrate|twin) --url", line)]

    with Emulator() as double:
        for name, value in double.environment().items():
            monkeypatch.setenv(name, value)
        asked = [line.replace("http://127.0.0.1:8000", double.url).split()[2:] for line in lines]
        ended = [CliRunner().invoke(app, words) for words in asked]

    assert [0, 0] == [one.exit_code for one in ended], [one.output for one in ended]
    assert 'U-SESSION-DUPLICATE = "409"' in (tmp_path / "profile.toml").read_text()
