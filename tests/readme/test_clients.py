"""What the pages show of unmodified clients."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from agentdouble import Emulator
from agentdouble.core import running
from tests.readme.consoles import shown
from tests.readme.pages import DOUBLE, FRONT, block, read
from tests.readme.projects import bash

pytestmark = pytest.mark.once

SHOWN = (
    block(FRONT, "console", "$ python3 -m venv clients"),
    block(DOUBLE, "console", "$ agentdouble serve --tls"),
    block(DOUBLE, "console", '$ eval "$(agentdouble env --for agentkit)"'),
)
COMMANDS = [one for text in SHOWN for one in shown(text)]
AGENTKIT = "DOUBLECHECK_AGENTKIT_PYTHON"


@pytest.mark.slow
def test_a_shell_takes_over_the_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``eval`` of what ``agentdouble env`` prints of the double that runs."""
    evaluated = [one.command for one in COMMANDS if one.command.startswith("eval")]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    with Emulator() as double, running.announced(double.connection):
        seen = bash(" && ".join([*evaluated, "env"]), tmp_path).splitlines()

    host = double.url.removeprefix("http://")
    assert {f"VOLCENGINE_AGENTKIT_HOST={host}", f"AGENTKIT_TOOL_HOST={host}"} <= set(seen)


def test_the_variables_are_those_that_are_set() -> None:
    """Each client has the names of its own line, and those of the line of both."""
    told = {
        client: set(re.findall(r"`(\w+)`", names))
        for client, names in re.findall(r"^\| (agentkit|veadk|both) \| (.*) \|$", read(FRONT), re.M)
    }

    (others,) = re.findall(r"^\| its other services.* of (.*) \|$", read(FRONT), re.M)
    for name in re.findall(r"`(\w+)`", others):
        told["agentkit"] |= {f"VOLCENGINE_{name}_{end}" for end in ("HOST", "SCHEME")}

    with Emulator() as double:
        made = {one: set(double.environment(one)) for one in ("agentkit", "veadk")}

    assert made == {one: told[one] | told["both"] for one in made}


@pytest.mark.skipif(AGENTKIT not in os.environ, reason=f"{AGENTKIT} names no Python with agentkit")
def test_the_real_client_works(tmp_path: Path) -> None:
    """Its commands, word for word, in an environment that has it."""
    asked = dict.fromkeys(one.command for one in COMMANDS if "bin/agentkit " in one.command)
    (tmp_path / "clients").symlink_to(Path(os.environ[AGENTKIT]).parents[1])
    (tmp_path / "a.txt").write_text("hi")

    with Emulator() as double:
        variables = {**double.environment("agentkit"), "HOME": str(tmp_path)}
        said = {one: bash(one, tmp_path, **variables) for one in asked}

    assert any("t-sandbox" in one for one in said.values())
    assert ["hi" in one for command, one in said.items() if "echo hi" in command] == [True]
