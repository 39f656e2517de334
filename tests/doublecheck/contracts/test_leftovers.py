from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any
from urllib.parse import urlsplit

import pytest

from agentdouble import Emulator
from doublecheck import Platform, Target
from doublecheck.client import doubles
from doublecheck.contracts import conftest, wire
from doublecheck.contracts.conftest import REFERENCE_AGENTS
from doublecheck.contracts.reference import executor
from doublecheck.contracts.reference.agentdouble_apps import reference_apps
from doublecheck.contracts.verdicts import Verdict
from doublecheck.results import AgentSession
from doublecheck.run import pytest_run

pytestmark = pytest.mark.once

CREATED = re.compile(r"^/apps/([^/]+)/users/([^/]+)/sessions")
CHOSEN = "API-03 or API-07 or API-13 or A2A-04 or SBX-04 or SBX-10 or CTL-08 or MCP-01"
LISTS = ("ListSessions", "ListTools", "ListMCPServices")


@pytest.fixture
def resources(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The tasks that the reference application keeps."""
    tasks: dict[str, Any] = {}
    make = executor.Steps.__init__

    def init(self: executor.Steps, resources: dict[str, Any]) -> None:
        tasks["store"] = resources
        make(self, resources)

    monkeypatch.setattr(executor.Steps, "__init__", init)
    return tasks


@pytest.fixture
def double(resources: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """A double under check that already has a user's sessions, service and tasks."""
    double = doubles.start_double(*reference_apps(), agents=REFERENCE_AGENTS)
    target = Target.of(double, reference_app=True)
    # as the options would have it, which know no way to make services on it
    monkeypatch.setattr(conftest, "serving", lambda *_: nullcontext(target))
    double.mcp.create("somebodys", f"{double.url}/mcp")
    with Platform(target) as platform:
        platform.run_code("kept = 1", user_id="somebody", session_id="s1")
        platform.agents.create("doublecheck_reference", user_id="somebody")
    try:
        yield double
    finally:
        double.stop()


@pytest.mark.slow
def test_checks_leave_nothing_behind(double: Emulator, resources: dict[str, Any]) -> None:
    """Everything that the platform lists, its sessions and its tasks are as before."""
    target = Target.of(double)
    before = _listed(target)

    options = (f"--platform-url={double.url}", "--platform-reference-app", "--platform-examples=1")
    ended = pytest_run.run([*options, "-k", CHOSEN], verbose=False)

    verdicts = {clause.id: verdict for clause, verdict in ended.verdicts().items()}
    omitted = {"CTL-08": Verdict.NOT_OBSERVABLE}
    assert {**dict.fromkeys(CHOSEN.split(" or "), Verdict.PASSED), **omitted} == verdicts
    assert before == _listed(target)
    assert {} == _sessions_of_checks(target)
    assert {} == resources["store"]


def _listed(target: Target) -> dict[str, Any]:
    """Return the output of each List action, without fields that change over time."""
    with Platform(target) as platform:
        bodies = {name: {"MaxResults": 100} for name in LISTS}
        bodies["ListSessions"]["ToolId"] = target.sandbox_tool()  # type: ignore[assignment]
        remaining = {
            name: wire.envelope(wire.control_plane(platform, body, action=name))[1]
            for name, body in bodies.items()
        }
    return {name: _ids(result) for name, result in remaining.items()}


def _ids(result: dict[str, Any]) -> list[list[str]]:
    """Return the ids and names of each listed object."""
    return [
        sorted(f"{key}={value}" for key, value in thing.items() if key.endswith(("Id", "Name")))
        for things in result.values()
        if isinstance(things, list)
        for thing in things
    ]


def _sessions_of_checks(target: Target) -> dict[tuple[str, str], tuple[AgentSession, ...]]:
    """Return the remaining sessions of users that the journal saw the checks create."""
    with Platform(target) as platform:
        matches = [CREATED.match(urlsplit(entry.url).path) for entry in platform.journal()]
        owners = {(match[1], match[2]) for match in matches if match is not None}
        checks = {owner for owner in owners if owner[1] != "somebody"}
        assert checks
        listed = {(app, user): platform.agents.list(app, user_id=user) for app, user in checks}
    return {owner: sessions for owner, sessions in listed.items() if sessions}
