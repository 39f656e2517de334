"""The display of a double's faults: the armed ones, and what they have done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from doublecheck.notebook.display.markup import (
    QUIET,
    WARNING,
    Markup,
    badge,
    box,
    code,
    element,
    quiet,
    table,
    title,
)
from doublecheck.notebook_repr import counted

if TYPE_CHECKING:
    from doublecheck.values.double import ArmedFault
    from doublecheck.wire.faults import FaultPlan


def fault(shown: ArmedFault) -> Markup:
    """Return a fault."""
    return box(_table((shown,)))


def faults(shown: Sequence[ArmedFault]) -> Markup:
    """Return faults."""
    if not shown:
        return box(quiet("No fault is armed."))
    return box(title(counted(len(shown), "fault")), _table(shown))


def plan(shown: FaultPlan) -> Markup:
    """Return the faults of a double, and the requests made while they were armed."""
    seen = ", ".join(f"{name} ({times})" for name, times in shown.seen.items())
    asked = element("div", quiet(f"Asked for meanwhile: {seen}.")) if seen else None
    return box(faults(shown.faults), asked)


def _table(shown: Sequence[ArmedFault]) -> Markup:
    numbers = ["calls", "fired"]
    return table(["id", "fault", *numbers, ""], [_row(one) for one in shown], right=numbers)


def _row(one: ArmedFault) -> list[str | None]:
    fired = badge("fired", WARNING) if one.fired else badge("armed", QUIET)
    return [code(one.id), code(one.described), str(one.calls), str(one.fired), fired]
