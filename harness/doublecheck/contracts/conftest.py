"""What the contract checks share: their double, what is not checked where, how a failure reads."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from doublecheck import options, verdicts
from doublecheck.contracts.clauses import MARKER, Clause
from doublecheck.contracts.wire import Sandbox
from doublecheck.fixtures import PlatformConfig, serving
from doublecheck.platform import Platform

if TYPE_CHECKING:
    from doublecheck.target import Target

REFERENCE_AGENTS = Path(__file__).parent / "applications" / "agentdouble" / "agents"


@pytest.fixture(scope="session")
def platform_server(request: pytest.FixtureRequest) -> Iterator[Target]:
    """The target of the checks: what the options name, or a double with the reference apps."""
    with ExitStack() as stack:
        config = PlatformConfig()
        if options.plan_of(request.config).in_process:
            from doublecheck.contracts.reference_app import reference_apps

            config = PlatformConfig(
                apps=reference_apps(),
                reference_app=True,
                settings={"keys": [_restricted()], "agents": REFERENCE_AGENTS},
            )
        yield stack.enter_context(serving(request.config, config))


def _restricted() -> dict[str, Any]:
    """Return a key pair without the full-access permission, for CTL-07."""
    return {
        "access_key": "AKLTrestricted",
        "secret_key": secrets.token_urlsafe(32),
        "full_access": False,
    }


@pytest.fixture(scope="session")
def platform(platform_server: Target) -> Iterator[Platform]:
    """One Platform for all checks; nothing is reset, because each uses sessions of its own."""
    with Platform(platform_server) as platform:
        yield platform


@pytest.fixture
def sandbox(platform: Platform) -> Sandbox:
    """A session that no other check uses."""
    return Sandbox(platform, user_id="doublecheck", session_id=uuid.uuid4().hex)


@pytest.fixture(autouse=True)
def _observable(request: pytest.FixtureRequest, platform_server: Target) -> None:
    """Skip, with its reason, what this target cannot show."""
    mark = request.node.get_closest_marker(MARKER)
    reason = verdicts.why_not(mark.args[0], platform_server, **mark.kwargs)
    if reason is not None:
        pytest.skip(reason)


def pytest_itemcollected(item: pytest.Item) -> None:
    named = [mark.args[0] for mark in item.iter_markers(MARKER)]
    if len(named) != 1:
        raise pytest.UsageError(f"{item.nodeid} must name exactly one clause, not {len(named)}.")
    item.user_properties.append((verdicts.CLAUSE, named[0].id))
    item.extra_keyword_matches.add(named[0].id)  # so that -k INV-05 finds it


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, pytest.TestReport]:
    report: pytest.TestReport = yield
    mark = item.get_closest_marker(MARKER)
    if report.failed and call.excinfo is not None and mark is not None:
        verdict = verdicts.of_failure(report.when, call.excinfo.value)
        report.user_properties.append((verdicts.VERDICT, verdict.value))
        report.longrepr = _Failure(mark.args[0], report.longrepr)  # type: ignore[assignment]
    return report


class _Failure:
    """A failure as pytest shows it, below the clause that failed."""

    def __init__(self, clause: Clause, shown: Any) -> None:
        self._clause = clause
        self._shown = shown
        self.reprcrash = getattr(shown, "reprcrash", None)  # pytest's own name for the last line

    def toterminal(self, writer: Any) -> None:
        writer.line(str(self._clause), bold=True)
        writer.line(f"specification, section {self._clause.section}")
        writer.line()
        self._shown.toterminal(writer)

    def __str__(self) -> str:
        return f"{self._clause}\nspecification, section {self._clause.section}\n\n{self._shown}"
