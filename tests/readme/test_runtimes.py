"""What the double's page shows of runtimes."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentdouble import Emulator, Settings
from tests.readme.consoles import run, shown
from tests.readme.pages import DOUBLE, block
from tests.readme.projects import forget

pytestmark = pytest.mark.once

MY_AGENT = block(DOUBLE, "python", "# my_agent.py")
RUNTIMES = block(DOUBLE, "toml", "# runtimes.toml")
DECLARED = block(DOUBLE, "console", "$ agentdouble serve --config runtimes")
MADE = block(DOUBLE, "console", "$ agentdouble runtime create")


def test_the_runtimes_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings file hosts the page's application, and its commands make another."""
    forget(monkeypatch)
    (tmp_path / "runtimes.toml").write_text(RUNTIMES)
    (tmp_path / "my_agent.py").write_text(MY_AGENT)
    monkeypatch.chdir(tmp_path)

    with Emulator(settings=Settings.load(Path("runtimes.toml"), port=0)) as double:
        for name, value in double.environment().items():
            monkeypatch.setenv(name, value)
        commands = [one.command for one in (*list(shown(DECLARED))[1:], *shown(MADE))]
        said = [run(command, double.url) for command in commands]

    address = f"{double.url}/runtimes/pages\n"
    versions = [f"Version {number} is in force.\n" for number in (2, 1)]
    assert ['"42\\n"', MY_AGENT, address, MY_AGENT, *versions] == said[:6]
    assert ["address     " + address in said[6], "/my_agent.py" in said[7]] == [True, True]
    assert said[8].endswith(" is deleted.\n")
