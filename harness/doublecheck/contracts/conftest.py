"""The fixtures and hooks of the contract checks: their double, skipped checks, failure reports."""

from __future__ import annotations

import inspect
import secrets
import tempfile
import uuid
from collections.abc import Collection, Generator, Iterator, Sequence, Set
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import configuration

from doublecheck.client import transport
from doublecheck.client._sync.clock import PlatformClock
from doublecheck.client._sync.platform import Platform
from doublecheck.client.session_target import PlatformConfig, serving
from doublecheck.contracts import disturbances, verdicts
from doublecheck.contracts.agent_users import (  # noqa: F401 (fixtures)
    app,
    apps,
    other_user,
    user,
    user_elsewhere,
)
from doublecheck.contracts.clauses import MARKER
from doublecheck.contracts.engine import FAILURES, Examples, chosen, longest_sequence, renewed
from doublecheck.contracts.exit_status import LEFT_OUT, LEVEL
from doublecheck.contracts.failure_report import cause, explained, last_exchanges
from doublecheck.contracts.hosting import Hosted, declared
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.contracts.losses import Patience
from doublecheck.contracts.mcp_servers import (  # noqa: F401 (fixtures)
    make_service,
    mcp_client,
    mcp_server,
    service,
)
from doublecheck.contracts.reference.agentdouble_apps import reference_apps
from doublecheck.contracts.sandboxes import CALLERS, CheckSandbox
from doublecheck.contracts.surface_states import SurfaceStates
from doublecheck.contracts.verdicts import Verdict
from doublecheck.errors import DoubleCheckError, TargetError
from doublecheck.target import pytest_options
from doublecheck.target.facts import Surface
from doublecheck.target.target import Target
from doublecheck.wire import request_log
from doublecheck.wire.exchanges import redact, secrets_of

SECRETS = pytest.StashKey[Collection[str]]()
SURFACES = pytest.StashKey[SurfaceStates]()
PATIENCE = pytest.StashKey[Patience]()
START_WITHIN_S = 50.0  # less than the timeout of a Platform, because this machine may be busy
REFERENCE_AGENTS = Path(__file__).parent / "applications" / "agentdouble" / "agents"


@pytest.fixture(scope="session")
def _doublecheck_server(request: pytest.FixtureRequest) -> Iterator[Target]:
    """The target of the checks: named by the options, or a double with the reference apps."""
    with ExitStack() as stack:
        config, hosted = PlatformConfig(), None
        if pytest_options.plan_of(request.config).in_process:
            surfaces = _surfaces_of(request.session.items)
            if "runtimes" in surfaces:
                hosted = stack.enter_context(declared())
            config = PlatformConfig(
                apps=reference_apps(surfaces),
                reference_app=True,
                settings={
                    "keys": [_restricted()],
                    "agents": REFERENCE_AGENTS,
                    "runtimes": () if hosted is None else hosted.tables,
                    "start_timeout_s": START_WITHIN_S,
                },
            )
        target = stack.enter_context(serving(request.config, config))
        if hosted is not None:
            target = replace(target, other_key=hosted.other_key)
        request.config.stash[SECRETS] = secrets_of(target)
        request.config.stash[PATIENCE] = Patience(target)
        yield target


def _surfaces_of(items: Sequence[pytest.Item]) -> Set[Surface]:
    """Return the surfaces of checks; the double has what the selected ones need and no more."""
    marks = filter(None, (item.get_closest_marker(MARKER) for item in items))
    return {mark.kwargs["surface"] for mark in marks}


def _restricted() -> dict[str, Any]:
    """Return a key pair without the full-access permission, for CTL-07."""
    return {
        "access_key": "AKLTrestricted",
        "secret_key": secrets.token_urlsafe(32),
        "full_access": False,
    }


@pytest.fixture(scope="session")
def _doublecheck_platform(_doublecheck_server: Target, patience: Patience) -> Iterator[Platform]:
    """One Platform for all checks. It is never reset, because each check uses separate sessions."""
    with Platform(_doublecheck_server, longest_answer_s=transport.LONGEST_ANSWER_S) as platform:
        platform._connection.again = patience.again
        yield platform


@pytest.fixture(scope="session")
def platform(_doublecheck_platform: Platform) -> Platform:
    """The Platform under test."""
    return _doublecheck_platform


@pytest.fixture(scope="session")
def _hosted(platform: Platform) -> Iterator[Hosted]:
    """The runtimes of all checks. Each is started by the first check that needs it."""
    with closing(Hosted(platform)) as hosted:
        yield hosted


@pytest.fixture
def hosted(_hosted: Hosted) -> Hosted:
    """The reference applications as runtimes."""
    for platform in _hosted.opened:
        platform.exchanges.clear()
    return _hosted


@pytest.fixture
def leftovers(platform: Platform, request: pytest.FixtureRequest) -> Iterator[Leftovers]:
    """The resources that a check creates on the platform. They are removed when it ends.

    A double in this process ends with the run, so only sandboxes, which hold processes, are removed
    from it.
    """
    leftovers = Leftovers(platform)
    yield leftovers
    in_process = pytest_options.in_process(request.config)
    (leftovers.remove_sandboxes if in_process else leftovers.remove)()


@pytest.fixture(scope="session")
def _callers(platform: Platform) -> Iterator[None]:
    """The sandbox sessions of callers that ask at the same time, which all checks share."""
    yield
    leftovers = Leftovers(platform)
    leftovers.sandbox(CALLERS)
    leftovers.remove()


@pytest.fixture
def sandbox(platform: Platform, leftovers: Leftovers, _callers: None) -> CheckSandbox:
    """A session that only this check uses."""
    session_id = uuid.uuid4().hex
    leftovers.sandbox(session_id)
    return CheckSandbox(platform, user_id="doublecheck", session_id=session_id)


@pytest.fixture
def clock(platform: Platform, request: pytest.FixtureRequest) -> Iterator[PlatformClock]:
    """The clock of a double, which stands still. Skip the check if the clock cannot be moved."""
    if platform.target.kind == "live":
        pytest.skip("not run: takes 30 minutes")
    if not pytest_options.in_process(request.config) and not platform.target.allow_writes:
        pytest.skip("not run: moves the clock of a double that was running before the checks")
    platform.clock.freeze()
    yield platform.clock
    platform.reset()


@pytest.fixture
def examples(
    request: pytest.FixtureRequest,
    platform: Platform,
    patience: Patience,
    _hypothesis_home: None,
) -> Examples:
    """How many generated inputs a check tries, and from which seed (``--examples``, ``--seed``)."""
    plan = pytest_options.plan_of(request.config)
    count, seed = chosen(plan)
    quick = plan.value("level") == verdicts.QUICK
    surface = request.node.get_closest_marker(MARKER).kwargs["surface"]
    return Examples(
        count,
        seed,
        forget=platform.exchanges.clear,
        patience=patience,
        disturbances=() if quick else disturbances.of(surface, request.fixturenames),
        quick=quick,
        longest=longest_sequence(platform.target, quick=quick),
    )


@pytest.fixture(scope="session")
def _hypothesis_home() -> Iterator[None]:
    """Keep Hypothesis from creating its .hypothesis folder in the working directory."""
    with tempfile.TemporaryDirectory(prefix="doublecheck-") as folder:
        configuration.set_hypothesis_home_dir(folder)
        yield
        configuration.set_hypothesis_home_dir(None)


@pytest.fixture(scope="session")
def _surfaces(
    request: pytest.FixtureRequest, platform_server: Target, patience: Patience
) -> SurfaceStates:
    """The states of this target's surfaces."""
    request.config.stash[SURFACES] = SurfaceStates(platform_server, patience)
    return request.config.stash[SURFACES]


@pytest.fixture(scope="session")
def patience(request: pytest.FixtureRequest, _doublecheck_server: Target) -> Patience:
    """Repeats what fails because answers are lost on the way."""
    return request.config.stash[PATIENCE]


@pytest.fixture(autouse=True)
def _requests(request: pytest.FixtureRequest, patience: Patience) -> Iterator[None]:
    """Count the requests that a check and its cleanup send, and the answers that are lost."""
    urls: list[str] = []
    lost_before = patience.total
    with request_log.listening(lambda exchange: urls.append(exchange.request.url)):
        yield
    count = sum("/_emulator/" not in url for url in urls)
    request.node.user_properties.append((verdicts.REQUESTS, count))
    if patience.total > lost_before:
        request.node.user_properties.append((verdicts.LOST, patience.total - lost_before))


@pytest.fixture(autouse=True)
def _short_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the diff of a failed comparison: pytest's full diff of a megabyte takes minutes.

    pytest shows the full diff if these variables are set. contracts.ini does the same for ``-v``.
    """
    for name in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _observable(
    request: pytest.FixtureRequest, platform: Platform, _surfaces: SurfaceStates, _requests: None
) -> None:
    """Skip a check that this target cannot show.

    Fail with an error if the target does not answer.
    """
    mark = request.node.get_closest_marker(MARKER)
    clause, surface = mark.args[0], mark.kwargs["surface"]
    needs = {name: mark.kwargs[name] for name in ("reference_app", "writes")}
    reason = verdicts.why_not(clause, platform.target, surface=surface, **needs)
    if reason is not None:
        pytest.skip(reason)
    platform.exchanges.clear()
    _surfaces.require(surface)
    routes = ["sessions"] if "user" in request.fixturenames else []
    if (callspec := getattr(request.node, "callspec", None)) and "route" in callspec.params:
        routes.append(callspec.params["route"])
    _surfaces.require_evidence(platform, clause, surface, routes)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    plan = pytest_options.plan_of(config)
    strict = config.getoption("platform_strict_should")
    try:
        verdicts.require_consistent(plan.value("level"), strict, "--platform-{}".format)
    except TargetError as error:
        raise pytest.UsageError(str(error)) from None
    declared_surfaces = set(plan.value("offers") or ()) & _surfaces_of(items)
    verdicts.select(
        config,
        items,
        level=plan.value("level") or "full",
        reference_app=bool(plan.value("reference_app")),
        writes=plan.kind == "double" or bool(plan.value("allow_writes")),
        in_process=plan.in_process,
    )
    config.stash[LEFT_OUT] = tuple(sorted(declared_surfaces - _surfaces_of(items)))


def pytest_itemcollected(item: pytest.Item) -> None:
    marks = list(item.iter_markers(MARKER))
    if len(marks) != 1:
        raise pytest.UsageError(f"{item.nodeid} must name exactly one clause, not {len(marks)}.")
    clause = marks[0].args[0]
    # pytest-xdist's workers transfer only text and these properties
    item.user_properties += [
        (verdicts.CLAUSE, clause.id),
        (LEVEL, clause.level),
        (verdicts.ROLE, "smoke" if marks[0].kwargs["smoke"] else "check"),
        (verdicts.NAME, f"{item.path.name}::{item.name}"),
    ]
    item.extra_keyword_matches |= {clause.id, clause.group}  # so that -k INV-05 finds it


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    """Run a check, and again with new names if it fails because answers are lost on the way."""
    names = inspect.signature(pyfuncitem.obj).parameters
    fixtures = {name: pyfuncitem.funcargs[name] for name in names}

    def attempt(number: int) -> None:
        pyfuncitem.obj(**{name: renewed(it, number) for name, it in fixtures.items()})

    patience = pyfuncitem.config.stash.get(PATIENCE, None)
    attempt(0) if patience is None else patience.repeat(attempt, FAILURES)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, pytest.TestReport]:
    report: pytest.TestReport = yield
    secrets = item.config.stash.get(SECRETS, ())
    _redact(report, secrets)
    mark = item.get_closest_marker(MARKER)
    if not report.failed or call.excinfo is None or mark is None:
        return report
    error, arguments = call.excinfo.value, getattr(item, "funcargs", {})
    surfaces = item.config.stash.get(SURFACES, None)
    silent = surfaces is not None and surfaces.is_silent(mark.kwargs["surface"], error)
    if silent:
        verdict = Verdict.COULD_NOT_ASK
    else:
        verdict = verdicts.of_failure(report.when, error, library=mark.args[0].scope == "library")
    # for our own errors, the message says what to do
    of_ours = report.when == "setup" and isinstance(error, DoubleCheckError)
    crash = getattr(report.longrepr, "reprcrash", None)
    if of_ours or crash is None or verdict is Verdict.COULD_NOT_ASK:
        reason = redact(str(error), secrets)
    else:
        reason = redact(crash.message, secrets)
    exchanges = last_exchanges(arguments)
    report.user_properties += [
        (verdicts.VERDICT, verdict.value),
        (verdicts.REASON, reason),
        (verdicts.CAUSE, redact(cause(error, reason, exchanges), secrets)),
    ]
    report.longrepr = explained(
        mark.args[0],
        reason,
        report.longrepr,
        exchanges,
        secrets=secrets,
        where=pytest_options.words(item.config),
        example=arguments.get("examples", Examples).failing,
    )
    return report


def _redact(report: pytest.TestReport, secrets: Collection[str]) -> None:
    """Remove the target's secrets from a report. Failure does this for failures."""
    report.sections = [(name, redact(text, secrets)) for name, text in report.sections]
    report.user_properties = [
        (name, redact(value, secrets) if isinstance(value, str) else value)
        for name, value in report.user_properties
    ]
    if isinstance(report.longrepr, tuple):
        report.longrepr = (*report.longrepr[:2], redact(report.longrepr[2], secrets))
