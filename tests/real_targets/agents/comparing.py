"""A case asked of both servers, and where the answers differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.real_targets.agents.cases import Case
from tests.real_targets.agents.conversation import Answer, Conversation

_SHOWN = 300


@dataclass(frozen=True)
class Difference:
    """A place in an answer, with what the real server and what the double has there."""

    app: str
    asked: str
    place: str
    real: object
    double: object

    def __str__(self) -> str:
        real, double = (str(one)[:_SHOWN] for one in (self.real, self.double))
        asked = f"{self.app}: {self.asked[:_SHOWN]}"
        return f"{asked}\n  {self.place}\n    real   {real}\n    double {double}"


@dataclass(frozen=True)
class Compared:
    """A case with what both answered."""

    case: Case
    requests: int
    events: int
    differences: tuple[Difference, ...]


def compare(case: Case, real: str, double: str) -> Compared:
    """Ask both servers a case."""
    answers = [_answers(case, url) for url in (real, double)]
    found = tuple(_between(case.app, *answers))
    counted = sum(len(one.body) for one in answers[0] if "/run" in one.asked and one.status == 200)
    return Compared(case, len(answers[0]), counted, found)


def _answers(case: Case, url: str) -> list[Answer]:
    talk = Conversation(url, case.app)
    case.script(talk)
    return talk.normalized()


def _between(app: str, real: list[Answer], double: list[Answer]) -> Iterator[Difference]:
    for one, other in zip(real, double, strict=False):
        if one.asked != other.asked:
            yield Difference(app, one.asked, "asked", one.asked, other.asked)
            return
        if one.status != other.status:
            yield Difference(app, one.asked, "status", one.status, other.status)
        for place, mine, theirs in _differing(one.body, other.body, ""):
            yield Difference(app, one.asked, place or "body", mine, theirs)
    if len(real) != len(double):
        yield Difference(app, "", "number of requests", len(real), len(double))


def _differing(real: Any, double: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(real, dict) and isinstance(double, dict):
        for key in {**real, **double}:
            absent = "(absent)"
            yield from _differing(
                real.get(key, absent), double.get(key, absent), f"{place}.{key}".lstrip(".")
            )
    elif isinstance(real, list) and isinstance(double, list) and len(real) == len(double):
        for number, (one, other) in enumerate(zip(real, double, strict=True)):
            yield from _differing(one, other, f"{place}[{number}]")
    elif real != double or type(real) is not type(double):
        yield place, real, double
