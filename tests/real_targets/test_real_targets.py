"""Every check, against implementations that nobody here wrote."""

from __future__ import annotations

import os
from pathlib import Path

import httpx

from doublecheck.contracts.clauses import clauses
from tests.real_targets import platforms
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
