"""Each mutant with a witness is broken: its witness holds on a double, and fails on the mutant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from doublecheck.client._sync.platform import Platform
from doublecheck.client.doubles import serving_double
from doublecheck.contracts.conftest import REFERENCE_AGENTS, START_WITHIN_S
from doublecheck.contracts.hosting import declared
from doublecheck.contracts.reference.agentdouble_apps import reference_apps
from doublecheck.errors import DoubleCheckError
from tests.mutants import Mutant, campaign
from tests.mutants.wire import Change, installed

pytestmark = [pytest.mark.once, pytest.mark.slow]

MUTANTS = [mutant for mutant in campaign.mutants() if mutant.witness is not None]


@pytest.fixture(scope="module")
def changes() -> list[Change]:
    """The changes in front of the double, which a test sets."""
    return []


@pytest.fixture(scope="module")
def served(changes: list[Change]) -> Iterator[Platform]:
    """A double with the reference applications, for all mutants."""
    with pytest.MonkeyPatch.context() as patch, declared() as runtimes:
        installed(patch, changes)
        with (
            serving_double(
                *reference_apps(),
                reference_app=True,
                agents=REFERENCE_AGENTS,
                runtimes=runtimes.tables,
                start_timeout_s=START_WITHIN_S,
            ) as target,
            Platform(target, timeout_s=START_WITHIN_S) as platform,
        ):
            yield platform


@pytest.fixture
def platform(served: Platform, changes: list[Change]) -> Iterator[Platform]:
    """The double, unchanged and without sessions."""
    yield served
    changes.clear()
    served.reset(keep=["runtimes"])


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_witness_fails_for_the_mutant_only(
    mutant: Mutant, platform: Platform, changes: list[Change], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mutant.witness is not None
    mutant.witness(platform)

    changes += mutant.changes
    if callable(mutant.breaks):
        mutant.breaks(monkeypatch)
    with pytest.raises((AssertionError, DoubleCheckError)):
        mutant.witness(platform)
