"""The reference applications as runtimes of a double and of a platform treated as live."""

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
    """A double that hosts the reference applications and serves others itself."""
    with hosting.declared() as declared, serving_double(runtimes=declared.tables) as target:
        yield target


@pytest.fixture
def live(double: Target, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the options for a deploying platform, with a runtime's address."""
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


def test_a_hosted_application_passes_the_same_checks_as_in_process(live: list[str]) -> None:
    """Checks that only a double can observe are reported as such."""
    modules = ("test_invocation", "test_probes", "test_hosting")
    options = ("--platform-examples=1", "-k", "INV or PRB or HST-02 or HST-04")
    run = pytest_run.run([*live, *options], verbose=False, modules=modules)

    passed = (*(f"INV-{n:02d}" for n in range(1, 10)), *(f"PRB-{n:02d}" for n in range(1, 8)))
    assert {
        **dict.fromkeys((*passed, "HST-04"), Verdict.PASSED),
        "PRB-05": Verdict.NOT_OBSERVABLE,
        "HST-02": Verdict.NOT_RUN,
    } == verdicts(run)


def test_checks_of_a_missing_runtime_or_identity_are_not_observable(
    live: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason names the runtime or the variable of the key."""
    monkeypatch.setattr(hosting, "NEIGHBOUR", "hosted-elsewhere")
    modules = ("test_hosting", "test_access")
    run = pytest_run.run([*live, "-k", "HST-03 or AUT-03"], verbose=False, modules=modules)

    assert dict.fromkeys(("HST-03", "AUT-03"), Verdict.NOT_OBSERVABLE) == verdicts(run)
    assert {
        "not observable: needs the reference application as a runtime, hosted-elsewhere",
        "not observable: needs the key of another identity: DOUBLECHECK_OTHER_API_KEY",
    } == {check.reason for check in run.checks}
