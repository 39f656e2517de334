"""Every check, against third-party implementations."""

from __future__ import annotations

import os
from pathlib import Path

import httpx
import pytest

from doublecheck.contracts.clauses import clauses
from tests.real_targets import agentkit_commands, platforms
from tests.real_targets.agentkit_commands import NOT_BUILT, VARIABLE, WORKS
from tests.real_targets.platforms import Implementation, case, gaps
from tests.real_targets.processes import serving

WITHOUT_PING = """
import os
from agentkit.apps import AgentkitSimpleApp

AgentkitSimpleApp().run(os.environ["HOST"], int(os.environ["PORT"]))
"""
LIBRARY = {"A2A-05"}  # checked in the library, not at an address


@case()
def test_deviations_are_known(implementation: Implementation, tmp_path: Path) -> None:
    """Exactly the explained clauses fail, and no check ends with an error."""
    with implementation.serve(os.environ[implementation.variable], tmp_path) as addresses:
        report = platforms.check(addresses)

    offered = {id_ for id_, value in clauses().items() if value.surface in addresses}
    unseen = report.those("not observable")
    assert gaps(implementation.package).keys() - unseen == report.those("failed"), report.reasons
    assert set() == report.those("error"), report.reasons
    assert report.those("passed") == offered - report.those("failed") - unseen - LIBRARY


@case("agentkit-sdk-python")
def test_ping_is_not_found_without_a_ping_function(
    implementation: Implementation, tmp_path: Path
) -> None:
    """The other three probes of PRB-05 answer."""
    python = os.environ[implementation.variable]
    with serving(python, "-c", WITHOUT_PING, folder=tmp_path) as url:
        probes = ("ping", "health", "readiness", "liveness")
        statuses = [httpx.get(f"{url}/{probe}", timeout=30).status_code for probe in probes]

    assert [404, 200, 200, 200] == statuses


pytestmark = pytest.mark.skipif(
    VARIABLE not in os.environ,
    reason=f"{VARIABLE} names no Python with it: pip install agentkit-sdk-python",
)


def test_commands_work_or_are_refused() -> None:
    """No command fails in another way or hangs."""
    found_outcomes = list(agentkit_commands.outcomes(os.environ[VARIABLE]))

    expected = dict.fromkeys(WORKS, "works") | dict.fromkeys(NOT_BUILT, "refused")
    assert expected == {outcome.command: outcome.kind for outcome in found_outcomes}, found_outcomes


def test_commands_are_listed() -> None:
    """A new version of the command line with a new command fails here."""
    assert [] == agentkit_commands.unlisted(agentkit_commands.names(os.environ[VARIABLE]))
