from __future__ import annotations

from collections import Counter

import pytest

from doublecheck.contracts.clauses import clauses
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.contracts.verdicts import Verdict
from doublecheck.runner import runner
from doublecheck.unknowns_report import usage
from tests.variants import Variant
from tests.variants.tables import VARIANTS

pytestmark = [pytest.mark.once, pytest.mark.slow]

QUIET = ("-p", "no:faulthandler", "-p", "no:unraisableexception")
FEW = "--platform-examples=2"  # the first ones have most in them
BLAMED = (Verdict.FAILED, Verdict.ERROR)
APART = {"SBX-11", "INV-09"}  # start browsers and kernels


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_legal_variant_is_not_blamed(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another form of the same answer passes every check of its surface."""
    chosen = {id_ for id_, clause in clauses().items() if clause.surface == variant.surface}
    variant.change(monkeypatch)
    monkeypatch.setattr(usage._Journal, "relied_on", lambda _self: frozenset())
    monkeypatch.setattr(Leftovers, "remove", lambda _self: None)

    run = runner.run(["-k", " or ".join(sorted(chosen - APART)), FEW, *QUIET], verbose=False)

    assert {} == {check.name: check.reason for check in run.checks if check.verdict in BLAMED}
    assert Verdict.PASSED in run.verdicts().values()


def test_each_surface_has_variants_and_each_variant_a_name() -> None:
    """More than eighty in all."""
    names = Counter(map(str, VARIANTS))

    assert [] == [name for name, count in names.items() if count > 1]
    assert 80 <= len(VARIANTS)
