"""The reference applications as runtimes: of a double of its own, and of one asked as if live."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from doublecheck import Target
from doublecheck.client.open_target import serving_double
from doublecheck.contracts import hosting
from doublecheck.contracts.run_result import Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.run import pytest_run


@pytest.fixture(scope="module")
def double() -> Iterator[Target]:
    """A double that hosts the reference applications, and serves others itself."""
    with hosting.declared() as declared, serving_double(runtimes=declared.tables) as target:
        yield target


@pytest.fixture
def live(double: Target, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The options by which it is asked as a platform that deploys: at a runtime's address."""
    for name, value in double.environment().items():
        monkeypatch.setenv(name, value)
    return [
        "--platform-target=live",
        f"--platform-url={double.url}/runtimes/{hosting.SIMPLE}",
        f"--platform-control-plane={double.url}",
        "--platform-offers=application,control_plane,runtimes",
        "--platform-reference-app",
        "--platform-allow-writes",
    ]


def verdicts(run: Run) -> Mapping[str, Verdict]:
    return {clause.id: verdict for clause, verdict in run.verdicts().items()}


def test_a_simple_application_answers_hosted_as_it_does_in_process(live: list[str]) -> None:
    """Every check of invocations and probes passes; what only a double can show is told."""
    modules = ("test_invocation", "test_probes", "test_hosting")
    options = ("--platform-examples=1", "-k", "INV or PRB or HST-02 or HST-04")
    run = pytest_run.run([*live, *options], verbose=False, modules=modules)

    passed = (*(f"INV-{n:02d}" for n in range(1, 10)), *(f"PRB-{n:02d}" for n in range(1, 8)))
    assert {
        **dict.fromkeys((*passed, "HST-04"), Verdict.PASSED),
        "PRB-05": Verdict.NOT_OBSERVABLE,
        "HST-02": Verdict.NOT_RUN,
    } == verdicts(run)


def test_what_a_platform_does_not_host_is_not_observable(
    live: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name, and so is what needs a second identity, of which nobody told."""
    monkeypatch.setattr(hosting, "NEIGHBOUR", "hosted-elsewhere")
    modules = ("test_hosting", "test_access")
    run = pytest_run.run([*live, "-k", "HST-03 or AUT-03"], verbose=False, modules=modules)

    assert dict.fromkeys(("HST-03", "AUT-03"), Verdict.NOT_OBSERVABLE) == verdicts(run)
    assert {
        "not observable: needs the reference application as a runtime, hosted-elsewhere",
        "not observable: needs the key of another identity: DOUBLECHECK_OTHER_API_KEY",
    } == {check.reason for check in run.checks}
