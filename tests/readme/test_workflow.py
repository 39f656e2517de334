"""The workflow file of the front page, its steps run as GitHub would."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.readme.consoles import commands_of
from tests.readme.pages import FRONT, ROOT, block
from tests.readme.projects import bash

pytestmark = pytest.mark.once

WORKFLOW = block(FRONT, "yaml", "# .github/workflows/tests.yml")
TESTS = block(FRONT, "python", "# test_my_agent.py")
INSTALL = block(FRONT, "console", "$ python3 -m venv .venv && .")
BY_HAND = block(FRONT, "console", "$ pip install pytest")


@pytest.fixture
def steps() -> list[dict[str, Any]]:
    (job,) = yaml.safe_load(WORKFLOW)["jobs"].values()
    return list(job["steps"])


@pytest.mark.slow
def test_its_steps_pass(steps: list[dict[str, Any]], tmp_path: Path) -> None:
    """In folders as its checkouts lay them; what it installs is installed here."""
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
    assert "2 passed" in outputs[-1]
    assert (project / "report.xml").exists()


def test_what_is_done_by_hand_is_the_same(steps: list[dict[str, Any]]) -> None:
    """The same is installed, from a clone elsewhere."""
    _, install, _ = commands_of(INSTALL)
    pytest_too, _ = commands_of(BY_HAND)
    (of_github,) = (step["run"] for step in steps if "pip install" in step.get("run", ""))

    by_hand = [*install.words[2:], *pytest_too.words[2:]]
    assert by_hand == [word.replace("./", "/path/to/") for word in shlex.split(of_github)[2:]]
