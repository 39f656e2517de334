"""The clauses about hosted runtimes (HST, AUT), of which this version has no checks.

A target that has no runtimes says so and they are not offered; of one that declares some,
nothing can be said, and that is an error: never a pass.
"""

from __future__ import annotations

import pytest

from doublecheck.contracts.clauses import clause
from doublecheck.errors import NotCheckedError

UNCHECKED = ("HST-01", "HST-02", "HST-03", "HST-04", "HST-05", "AUT-02", "AUT-03")


@pytest.mark.parametrize(
    "id_", [pytest.param(id_, marks=clause(id_, reference_app=False)) for id_ in UNCHECKED]
)
def test_what_is_hosted_cannot_be_checked_by_this_version(id_: str) -> None:
    """Refused by name."""
    raise NotCheckedError(id_, "runtimes")
