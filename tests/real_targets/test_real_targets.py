"""Every check, against implementations that nobody here wrote."""

from __future__ import annotations

import os
from pathlib import Path

import httpx
import pytest

from doublecheck.contracts.clauses import clauses
from tests.real_targets import agentkit_commands, platforms
from tests.real_targets.agentkit_commands import NOT_BUILT, VARIABLE, WORKS
from tests.real_targets.deviations import gaps
from tests.real_targets.installed import case
from tests.real_targets.platforms import Implementation
from tests.real_targets.processes import serving

WITHOUT_PING = """
import os
from agentkit.apps import AgentkitSimpleApp

AgentkitSimpleApp().run(os.environ["HOST"], int(os.environ["PORT"]))
"""
LIBRARY = {"A2A-05"}  # checked in the library, not at an address


@case()
def test_every_deviation_is_known(implementation: Implementation, tmp_path: Path) -> None:
    """What fails is what is explained, and nothing stands in the way of a check."""
    with implementation.serve(os.environ[implementation.variable], tmp_path) as addresses:
        report = platforms.check(addresses)

    offered = {id_ for id_, value in clauses().items() if value.surface in addresses}
    unseen = report.those("not observable")
    assert gaps(implementation.package).keys() - unseen == report.those("failed"), report.reasons
    assert set() == report.those("error"), report.reasons
    assert report.those("passed") == offered - report.those("failed") - unseen - LIBRARY


@case("agentkit-sdk-python")
def test_without_a_ping_function_ping_is_not_found(
    implementation: Implementation, tmp_path: Path
) -> None:
    """PRB-05 asked directly; the other three probes answer."""
    python = os.environ[implementation.variable]
    with serving(python, "-c", WITHOUT_PING, folder=tmp_path) as url:
        probes = ("ping", "health", "readiness", "liveness")
        statuses = [httpx.get(f"{url}/{probe}", timeout=30).status_code for probe in probes]

    assert [404, 200, 200, 200] == statuses


pytestmark = pytest.mark.skipif(
    VARIABLE not in os.environ,
    reason=f"{VARIABLE} names no Python with it: pip install agentkit-sdk-python",
)


def test_every_command_works_or_is_refused_by_name() -> None:
    """None fails in another way, and none waits for what never comes."""
    found_outcomes = list(agentkit_commands.outcomes(os.environ[VARIABLE]))

    expected = dict.fromkeys(WORKS, "works") | dict.fromkeys(NOT_BUILT, "refused")
    assert expected == {outcome.command: outcome.kind for outcome in found_outcomes}, found_outcomes


def test_every_command_is_known() -> None:
    """A new version of the command line with a new command is noticed."""
    assert [] == agentkit_commands.unlisted(agentkit_commands.names(os.environ[VARIABLE]))
