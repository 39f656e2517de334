"""What the pages show of unmodified clients."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from agentdouble import Emulator
from agentdouble.core import running
from tests.readme.consoles import commands_of
from tests.readme.pages import DOUBLE, FRONT, block, read
from tests.readme.projects import bash

pytestmark = pytest.mark.once

SHOWN = (
    block(FRONT, "console", "$ python3 -m venv clients"),
    block(DOUBLE, "console", "$ agentdouble serve --tls"),
    block(DOUBLE, "console", '$ eval "$(agentdouble env --for agentkit)"'),
)
COMMANDS = [command for text in SHOWN for command in commands_of(text)]
AGENTKIT = "DOUBLECHECK_AGENTKIT_PYTHON"


@pytest.mark.slow
def test_a_shell_takes_over_the_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``eval`` of what ``agentdouble env`` prints of the double that runs."""
    evaluated = [command.command for command in COMMANDS if command.command.startswith("eval")]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    with Emulator() as double, running.announced(double.connection):
        lines = bash(" && ".join([*evaluated, "env"]), tmp_path).splitlines()

    host = double.url.removeprefix("http://")
    assert {f"VOLCENGINE_AGENTKIT_HOST={host}", f"AGENTKIT_TOOL_HOST={host}"} <= set(lines)


def test_the_variables_are_those_that_are_set() -> None:
    """Each client has the names of its own line, and those of the line of both."""
    by_tool = {
        client: set(re.findall(r"`(\w+)`", names))
        for client, names in re.findall(r"^\| (agentkit|veadk|both) \| (.*) \|$", read(FRONT), re.M)
    }

    (others,) = re.findall(r"^\| agentkit, for other services.* of (.*) \|$", read(FRONT), re.M)
    for name in re.findall(r"`(\w+)`", others):
        by_tool["agentkit"] |= {f"VOLCENGINE_{name}_{end}" for end in ("HOST", "SCHEME")}

    with Emulator() as double:
        environments = {tool: set(double.environment(tool)) for tool in ("agentkit", "veadk")}

    assert environments == {tool: by_tool[tool] | by_tool["both"] for tool in environments}


@pytest.mark.skipif(AGENTKIT not in os.environ, reason=f"{AGENTKIT} names no Python with agentkit")
def test_the_real_client_works(tmp_path: Path) -> None:
    """Its commands, word for word, in an environment that has it."""
    runs = dict.fromkeys(shell.command for shell in COMMANDS if "bin/agentkit " in shell.command)
    (tmp_path / "clients").symlink_to(Path(os.environ[AGENTKIT]).parents[1])
    (tmp_path / "a.txt").write_text("hi")

    with Emulator() as double:
        variables = {**double.environment("agentkit"), "HOME": str(tmp_path)}
        outputs = {command: bash(command, tmp_path, **variables) for command in runs}

    assert any("t-sandbox" in output for output in outputs.values())
    assert ["hi" in output for command, output in outputs.items() if "echo hi" in command] == [True]
