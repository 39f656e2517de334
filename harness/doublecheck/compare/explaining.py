"""Explanations of differences by the declared fields of unknowns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

from agentdouble.core import ledger
from agentdouble.core.diff import documents
from agentdouble.core.diff.answers import mismatches
from agentdouble.core.diff.documents import Mismatch
from agentdouble.core.diff.pairs import Pairs
from agentdouble.core.diff.patterns import is_operation, is_path, is_text, text_of
from agentdouble.core.ledger import Effect
from doublecheck.compare.differences import Difference, Kind
from doublecheck.wire.exchanges import Exchange

UNKNOWNS = "x-agentdouble-unknowns"

_INDEX = re.compile(r"\[\d+\]")
_STEP = re.compile(r"\.(?P<name>\w+)|\[(?P<index>\*|\d+)\]")
_ABSENT = object()
_KINDS: Mapping[documents.Kind, Kind] = {
    "value": "value",
    "type": "type",
    "only first": "only double",
    "only second": "only live",
}
_MISSING = ("only double", "only live")
# the specification itself leaves this open: section 2.8 says "may be empty"
_MAY_BE_EMPTY = ("$.Result.Endpoint", "$.Result.InternalEndpoint")


def relied_on(exchange: Exchange) -> frozenset[str]:
    """Return the unknowns that a double's answer relied on, according to its header."""
    return frozenset(exchange.headers.get(UNKNOWNS, "").replace(",", " ").split())


def differences(
    double: Exchange, live: Exchange, pairs: Pairs, operation: str = ""
) -> tuple[Difference, ...]:
    """Return the differences between two answers, each with the unknown that explains it.

    Ids at the same place are matched in passing.
    """
    request, answer = (
        content.decode("utf-8", "replace") for content in (double.request.content, double.body)
    )
    explaining = _Explaining(operation, relied_on(double), request, answer)
    return explaining.explained(mismatches(double, live, pairs, operation, explaining.contents))


class _Explaining:
    """Explains differences by the operation, both bodies on the double's side, and its unknowns."""

    def __init__(
        self, operation: str, relied_on: frozenset[str], request: str, answer: str
    ) -> None:
        self._operation = operation
        self._relied_on = relied_on
        self._request = request
        self._answer = answer
        self._unwrapped: dict[str, str] = {}  # unknowns, by the paths of envelopes

    def explained(self, found: Sequence[Mismatch]) -> tuple[Difference, ...]:
        """Return mismatches as differences, each with the unknown that explains it, if any."""
        differences = [_difference(mismatch) for mismatch in found]
        # a field that both have somewhere is not missing on either platform
        on_both = _fields(differences, "only double") & _fields(differences, "only live")
        return tuple(
            difference
            if difference.kind in _MISSING and _field(difference) in on_both
            else replace(difference, because=self._reason(difference))
            for difference in differences
        )

    def contents(self, double: Any, live: Any, path: str) -> tuple[Any, Any, str] | None:
        """Return the contents of two documents in different envelopes, or None."""
        for unknown, effect in self._effects():
            if not effect.content or not is_path(path, effect.paths):
                continue
            first, second = (_content_path(body, effect.content) for body in (double, live))
            if first is not None and second is not None and first != second:
                deepest = max(first, second, key=len).removeprefix("$")
                self._unwrapped[path] = unknown
                return _at(double, first), _at(live, second), path + deepest
        return None

    def _reason(self, difference: Difference) -> str | None:
        if difference.path in self._unwrapped:
            return self._unwrapped[difference.path]
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
    if effect.content or not is_path(path, effect.paths) or is_path(path, effect.other_than):
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
    """Whether two values are two different members of a group, or both its only member."""
    pairs = permutations(group, 2) if len(group) > 1 else [(*group, *group)]
    return any(is_text(double, [a]) and is_text(live, [b]) for a, b in pairs)


def _content_path(document: Any, places: Sequence[str]) -> str | None:
    """Return the path of the content, deepest first: any document has something at ``$``."""
    deepest = sorted(places, key=len, reverse=True)
    return next((path for path in deepest if _at(document, path) is not _ABSENT), None)


def _at(document: Any, path: str) -> Any:
    """Return the value of a document at a path; ``[*]`` returns a list with each element's value."""
    return _down(document, list(_STEP.finditer(path)))


def _down(document: Any, steps: list[re.Match[str]]) -> Any:
    if not steps:
        return document
    step, *remaining = steps
    if step["name"] is not None:
        value = document.get(step["name"], _ABSENT) if isinstance(document, dict) else _ABSENT
        return value if value is _ABSENT else _down(value, remaining)
    if not isinstance(document, list):
        return _ABSENT
    if step["index"] != "*":
        index = int(step["index"])
        return _down(document[index], remaining) if index < len(document) else _ABSENT
    values = [_down(item, remaining) for item in document]
    return _ABSENT if any(value is _ABSENT for value in values) else values
