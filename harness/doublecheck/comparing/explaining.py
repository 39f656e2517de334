"""Decide which differences an unknown explains.

The double's answer names the unknowns that it relied on. Such an unknown explains a difference only
where its entry in the ledger says so: in that operation, at that path, of these two values. For
example, the alternatives of a status explain 409 beside 400, and not 409 beside 503.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from agentdouble import ledger
from agentdouble.ledger import Effect
from doublecheck.comparing.differences import Difference
from doublecheck.comparing.patterns import is_operation, is_path, is_text, text_of

_INDEX = re.compile(r"\[\d+\]")
_MISSING = ("only double", "only live")
# the specification itself leaves this open: section 2.8 says "may be empty"
_MAY_BE_EMPTY = ("$.Result.Endpoint", "$.Result.InternalEndpoint")


@dataclass(frozen=True)
class Asked:
    """What explains differences: the operation, both bodies on the double's side, its unknowns."""

    operation: str
    relied_on: Collection[str] = ()
    request: str = ""
    answer: str = ""

    def effects(self) -> Iterator[tuple[str, Effect]]:
        """Yield the effects of the unknowns that may show in this answer, with their ids."""
        for id_ in sorted(self.relied_on & ledger.unknowns().keys()):
            for effect in ledger.unknowns()[id_].explains:
                if self._applies(effect):
                    yield id_, effect

    def _applies(self, effect: Effect) -> bool:
        if not is_operation(self.operation, effect.operations):
            return False
        if effect.double_says and not is_text(self.answer, effect.double_says):
            return False
        return not is_text(self.request, effect.request_lacks)


def explained(differences: Sequence[Difference], asked: Asked) -> tuple[Difference, ...]:
    """Return the differences of an answer, each with the unknown that explains it, if one does."""
    on_both = _fields(differences, "only double") & _fields(differences, "only live")
    return tuple(
        one
        if one.because is not None or (one.kind in _MISSING and _field(one) in on_both)
        else replace(one, because=_reason(one, asked))
        for one in differences
    )


def _fields(differences: Sequence[Difference], kind: str) -> set[str]:
    """Return the fields that one side has; a field that both have somewhere is on both platforms."""
    return {_field(one) for one in differences if one.kind == kind}


def _field(difference: Difference) -> str:
    return _INDEX.sub("[*]", difference.path)


def _reason(difference: Difference, asked: Asked) -> str | None:
    values = (difference.double, difference.live)
    if is_path(difference.path, _MAY_BE_EMPTY) and "" in values and None not in values:
        return "section 2.8"
    found = (id_ for id_, effect in asked.effects() if _is_about(effect, difference))
    return next(found, None)


def _is_about(effect: Effect, difference: Difference) -> bool:
    path = difference.path
    if effect.content or not is_path(path, effect.paths) or is_path(path, effect.other_than):
        return False
    if difference.kind in _MISSING:
        present = difference.live if difference.kind == "only live" else difference.double
        given = any(is_text(text_of(present), group) for group in effect.values)
        return effect.missing or given or not effect.values
    if effect.missing and not effect.values:
        return False
    return not effect.values or any(
        _are_of(group, text_of(difference.double), text_of(difference.live))
        for group in effect.values
    )


def _are_of(group: Collection[str], double: str, live: str) -> bool:
    """Whether two values are two different ones of a group, or both its only one."""
    pairs = permutations(group, 2) if len(group) > 1 else [(*group, *group)]
    return any(is_text(double, [one]) and is_text(live, [other]) for one, other in pairs)
