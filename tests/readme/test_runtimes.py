"""What the double's page shows of runtimes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentdouble import Emulator, Settings
from tests.readme.consoles import commands_of, run
from tests.readme.pages import DOUBLE, FRONT, block
from tests.readme.projects import forget

pytestmark = pytest.mark.once

MY_AGENT = block(FRONT, "python", "# my_agent.py")
RUNTIMES = block(DOUBLE, "toml", "# runtimes.toml")
DECLARED = block(DOUBLE, "console", "$ agentdouble serve --config runtimes")
CHANGED = block(DOUBLE, "console", "$ agentdouble call ListRuntimes")


@pytest.mark.slow
def test_the_runtimes_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
