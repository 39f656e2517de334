"""Every check passes under every alternative that the specification leaves open."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping

import pytest

from agentdouble.core import ledger
from doublecheck.contracts.verdicts import Verdict
from doublecheck.run import pytest_run

pytestmark = [pytest.mark.once, pytest.mark.slow]  # each run is one of all checks

QUIET = ("-p", "no:faulthandler", "-p", "no:unraisableexception")
FEW = "--platform-examples=2"  # the first ones have most in them
BLAMED = (Verdict.FAILED, Verdict.ERROR)


def profiles() -> Iterator[Mapping[str, str]]:
    """Yield choices that cover every built alternative, as many at a time as fit."""
    alternatives = [
        [(id_, alternative.name) for alternative in unknown.alternatives if alternative.built]
        for id_, unknown in ledger.unknowns().items()
    ]
    for chosen in itertools.zip_longest(*alternatives):
        yield dict(pair for pair in chosen if pair is not None)


@pytest.mark.parametrize("chosen", list(profiles()), ids=lambda chosen: f"{len(chosen)}-unknowns")
def test_no_check_fails_under_any_alternative(
    chosen: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTDOUBLE_UNKNOWNS", json.dumps(chosen))

    run = pytest_run.run([FEW, *QUIET], verbose=False)

    assert {} == {check.name: check.reason for check in run.checks if check.verdict in BLAMED}
    assert 80 < list(run.verdicts().values()).count(Verdict.PASSED)
