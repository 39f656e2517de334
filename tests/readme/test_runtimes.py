"""What the double's page shows of runtimes."""

from __future__ import annotations

import json
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
        said = [run(one.command, double.url) for one in list(shown(DECLARED))[1:]]
        listing, *changes = (one.command for one in shown(CHANGED))
        runtimes = json.loads(run(listing, double.url))["AgentKitRuntimes"]
        (id_,) = [one["RuntimeId"] for one in runtimes if one["Name"] == "files"]
        found = [json.loads(run(one.replace("r-...", id_), double.url)) for one in changes]

    assert ['"42\\n"', MY_AGENT] == said
    assert [id_] * 3 == [one["RuntimeId"] for one in found]
