"""Each agent, on ``adk api_server`` and on the double."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real_targets.agents.cases import CASES, Case
from tests.real_targets.agents.comparing import compare
from tests.real_targets.agents.differences import unexplained


@pytest.mark.parametrize("case", [pytest.param(one, id=one.app) for one in CASES])
def test_an_agent_behaves_the_same_on_both(servers: tuple[str, str], case: Case) -> None:
    """Events, state, artifacts, memory and errors, but for what is explained."""
    assert [] == list(map(str, unexplained(compare(case, *servers))))


def test_every_agent_is_asked() -> None:
    """Each of ``applications`` has a case."""
    folder = Path(__file__).parent / "applications"
    there = {one.stem for one in folder.iterdir() if not one.name.startswith((".", "__"))}

    assert there <= {one.app for one in CASES}
