"""The levels of a run: which checks are carried out.

``full`` has every check that the platform can show. Where none of a clause can be, because it needs
the reference application or writes, a check of ``test_smoke`` stands in. ``smoke`` has these alone, and a few that
ask as little: some requests to each surface, for which nothing has to be deployed. It makes nothing,
unless writes are allowed. A surface that the platform was said to offer and that is not there fails
the smoke level; the full level says that it could not be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import pytest

from doublecheck.errors import TargetError

SMOKE = "smoke"
_MARKER = "clause"


@dataclass(frozen=True)
class Shown:
    """What a run can show: its level, and whether checks may use the reference app and write.

    A double that the run starts itself shows everything.
    """

    level: str
    reference_app: bool = False
    writes: bool = False
    everything: bool = False


# the checks of these clauses that need no reference application ask little
_LITTLE = frozenset(
    {"PRB-01", "PRB-02", "PRB-03", "PRB-04", "PRB-07", "API-01", "API-14", "API-15", "A2A-01"}
)


def require_consistent(
    level: str | None, strict_should: bool, spelled: Callable[[str], str]
) -> None:
    """Raise TargetError for a level with an option that is about another one."""
    if level == SMOKE and strict_should:
        raise TargetError(
            f"{spelled('level')} {SMOKE} and {spelled('strict-should')} contradict each other: a first "
            "look leaves out most of what is recommended. Leave out one of them."
        )


def select(config: pytest.Config, items: list[pytest.Item], shown: Shown) -> None:
    """Deselect the checks that are not of the level of a run."""
    marks = {id(item): item.get_closest_marker(_MARKER) for item in items}
    seen = {_asked(mark) for mark in marks.values() if mark and _is_seen(mark, shown)}
    dropped = [item for item in items if not _wanted(marks[id(item)], shown, seen)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in dropped]


def _wanted(mark: pytest.Mark | None, shown: Shown, seen: Collection[tuple[str, str]]) -> bool:
    """Whether a check is carried out; ``seen`` is what other checks ask that can be."""
    if mark is None:
        return True
    if shown.level == SMOKE:
        return bool(mark.kwargs["smoke"] or _asks_little(mark))
    return not mark.kwargs["smoke"] or not (shown.everything or _asked(mark) in seen)


def _asked(mark: pytest.Mark) -> tuple[str, str]:
    """Return the clause of a check, and the surface that it asks."""
    return mark.args[0].id, mark.kwargs["surface"]


def _is_seen(mark: pytest.Mark, shown: Shown) -> bool:
    """Whether a platform can show what a check of the full level asks."""
    needs = mark.kwargs
    if needs["smoke"] or needs["unknown"] is not None:
        return False
    return (shown.reference_app or not needs["reference_app"]) and (
        shown.writes or not needs["writes"]
    )


def _asks_little(mark: pytest.Mark) -> bool:
    needs = ("reference_app", "writes", "unknown")
    return mark.args[0].id in _LITTLE and not any(mark.kwargs[name] for name in needs)
