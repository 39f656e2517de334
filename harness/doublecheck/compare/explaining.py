"""Explanations of differences by unknowns.

An experiment shows most: the double is asked again under each alternative of each unknown on which
its answer relied, and the alternative under which it equals the live answer explains the
difference. Declared effects explain what no experiment can show.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations

from agentdouble.core import ledger
from agentdouble.core.diff import documents
from agentdouble.core.diff.answers import mismatches
from agentdouble.core.diff.documents import Mismatch
from agentdouble.core.diff.pairs import Pairs
from agentdouble.core.diff.patterns import is_operation, is_path, is_text, text_of
from agentdouble.core.ledger import Effect
from doublecheck.compare.alternatives import DoubleAnswers, Recorded, relied_on
from doublecheck.compare.differences import Difference, Kind
from doublecheck.wire.exchanges import Exchange

_STEP = re.compile(r"[.\[$]")
_INDEX = re.compile(r"\[\d+\]")
_AT_ONCE = 3  # answers, which the double limits
_KINDS: Mapping[documents.Kind, Kind] = {
    "value": "value",
    "type": "type",
    "only first": "only double",
    "only second": "only live",
}
_MISSING = ("only double", "only live")
# the specification itself leaves this open: section 2.8 says "may be empty"
_MAY_BE_EMPTY = ("$.Result.Endpoint", "$.Result.InternalEndpoint")


def differences(
    answers: DoubleAnswers, double: Recorded, live: Exchange, pairs: Pairs, operation: str = ""
) -> tuple[Difference, ...]:
    """Return the differences between two answers, each with the unknown that explains it.

    Ids at the same place are matched in passing.
    """
    before = copy.deepcopy(pairs)
    found = mismatches(double.exchange, live, pairs, operation)
    if not found:
        return ()
    experiment = _Experiment(answers, double, live, before, operation)
    assumed, left = experiment.explained(found)
    declared = _DeclaredEffects(operation, double.exchange)
    return (*assumed, *declared.explained([_difference(mismatch) for mismatch in left]))


class _Experiment:
    """Asks a double again, under the alternatives of the unknowns that its answer relied on."""

    def __init__(
        self, answers: DoubleAnswers, double: Recorded, live: Exchange, pairs: Pairs, operation: str
    ) -> None:
        self._answers = answers
        self._double = double
        self._live = live
        self._pairs = pairs
        self._operation = operation

    def explained(self, found: Sequence[Mismatch]) -> tuple[list[Difference], Sequence[Mismatch]]:
        """Return the differences that alternatives explain, and the mismatches that they leave.

        One alternative is added after another, as long as each brings the double's answer closer to
        the live one.
        """
        assumed: list[Difference] = []
        chosen: dict[str, str] = {}
        answer = self._double.exchange
        while found:
            best = self._best(found, chosen, answer)
            if best is None:
                break
            id_, name, answer, left = best
            remaining = _places(left)
            assumed += [
                replace(_difference(mismatch), because=f"{id_} = {name}")
                for mismatch in found
                if (mismatch.kind, mismatch.path) not in remaining
            ]
            chosen[id_] = name
            found = left
        return assumed, found

    def _best(
        self, found: Sequence[Mismatch], chosen: Mapping[str, str], answer: Exchange
    ) -> tuple[str, str, Exchange, Sequence[Mismatch]] | None:
        """Return the next alternative, the double's answer under it, and what is left."""
        others = [other for other in self._answers.others(answer) if other[0] not in chosen]
        best = None
        # the first answer is the control: a fresh double that differs otherwise explains nothing
        for start in range(0, len(others), _AT_ONCE - 1):
            batch = others[start : start + _AT_ONCE - 1]
            choices = [chosen, *({**chosen, id_: name} for id_, name in batch)]
            answers = self._answers.under(self._double, choices)
            if not answers or _places(self._left(answers[0])) != _places(found):
                return None
            for (id_, name), other in zip(batch, answers[1:], strict=True):
                left = self._left(other)
                if _is_closer(left, found) and (best is None or len(left) < len(best[3])):
                    best = id_, name, other, left
            if best is not None and not best[3]:
                break
        return best

    def _left(self, answer: Exchange) -> Sequence[Mismatch]:
        return mismatches(answer, self._live, copy.deepcopy(self._pairs), self._operation)


def _places(found: Sequence[Mismatch]) -> set[tuple[str, str]]:
    return {(mismatch.kind, mismatch.path) for mismatch in found}


def _is_closer(left: Sequence[Mismatch], found: Sequence[Mismatch]) -> bool:
    """Whether fewer places differ, or only places below them, which have become comparable."""
    places = _places(found)
    if _places(left) == places:
        return False
    paths = {mismatch.path for mismatch in found}
    if "status" in paths:  # different statuses hide the bodies
        return "status" not in {mismatch.path for mismatch in left}
    return all(
        (mismatch.kind, mismatch.path) in places
        or (mismatch.kind != "only first" and not paths.isdisjoint(_above(mismatch.path)))
        for mismatch in left
    )


def _above(path: str) -> Iterator[str]:
    """Yield the paths above a path."""
    return (path[: match.start()] for match in _STEP.finditer(path) if match.start())


class _DeclaredEffects:
    """Explains differences by the declared effects of unknowns, which no experiment can show."""

    def __init__(self, operation: str, double: Exchange) -> None:
        self._operation = operation
        self._relied_on = relied_on(double)
        self._request = double.request.content.decode("utf-8", "replace")
        self._answer = double.body.decode("utf-8", "replace")

    def explained(self, differences: Sequence[Difference]) -> tuple[Difference, ...]:
        """Return the differences, each with the unknown that explains it, if any."""
        # a field that both have somewhere is not missing on either platform
        on_both = _fields(differences, "only double") & _fields(differences, "only live")
        return tuple(
            difference
            if difference.kind in _MISSING and _field(difference) in on_both
            else replace(difference, because=self._reason(difference))
            for difference in differences
        )

    def _reason(self, difference: Difference) -> str | None:
        values = (difference.double, difference.live)
        if is_path(difference.path, _MAY_BE_EMPTY) and "" in values and None not in values:
            return "section 2.8"
        reasons = (id_ for id_, effect in self._effects() if _is_about(effect, difference))
        return next(reasons, None)

    def _effects(self) -> Iterator[tuple[str, Effect]]:
        """Yield the possible effects of the unknowns on this answer, with the unknowns' ids."""
        for id_ in sorted(self._relied_on & ledger.unknowns().keys()):
            for effect in ledger.unknowns()[id_].explains:
                if self._applies(effect):
                    yield id_, effect

    def _applies(self, effect: Effect) -> bool:
        if not is_operation(self._operation, effect.operations):
            return False
        if effect.double_says and not is_text(self._answer, effect.double_says):
            return False
        return not is_text(self._request, effect.request_lacks)


def _difference(mismatch: Mismatch) -> Difference:
    return Difference(_KINDS[mismatch.kind], mismatch.path, mismatch.first, mismatch.second)


def _fields(differences: Sequence[Difference], kind: str) -> set[str]:
    return {_field(difference) for difference in differences if difference.kind == kind}


def _field(difference: Difference) -> str:
    return _INDEX.sub("[*]", difference.path)


def _is_about(effect: Effect, difference: Difference) -> bool:
    path = difference.path
    if not is_path(path, effect.paths) or is_path(path, effect.other_than):
        return False
    if difference.kind in _MISSING:
        present = difference.live if difference.kind == "only live" else difference.double
        declared = any(is_text(text_of(present), group) for group in effect.values)
        return effect.missing or declared or not effect.values
    if effect.missing and not effect.values:
        return False
    return not effect.values or any(
        _are_of(group, text_of(difference.double), text_of(difference.live))
        for group in effect.values
    )


def _are_of(group: Collection[str], double: str, live: str) -> bool:
    """Whether two values are different members of a group, or are both its only member."""
    pairs = permutations(group, 2) if len(group) > 1 else [(*group, *group)]
    return any(is_text(double, [a]) and is_text(live, [b]) for a, b in pairs)
