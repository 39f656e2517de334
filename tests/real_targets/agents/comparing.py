"""A case asked of both servers, where the answers differ, and what may differ and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


@dataclass(frozen=True)
class Explained:
    """A kind of difference, and its reason."""

    reason: str
    covers: Callable[[Difference], bool]


def _hidden(one: Difference) -> bool:
    told = one.double.get("detail") if isinstance(one.double, dict) else None
    return one.real == "Internal Server Error" and told is not None


def _load(one: Difference) -> bool:
    told = str(one.double)
    return one.real == "Failed to load agent" and told.startswith("Failed to load agent '")


def _unfit(one: Difference) -> bool:
    of_it = "/app-info" in one.asked or one.app == "wrong_type"
    unfit = (404, 500) == (one.real, one.double) or "is not a BaseAgent" in str(one.real)
    return of_it and one.app == "wrong_type" and unfit


def _layout(one: Difference) -> bool:
    heads = (str(told).split(". ")[0] for told in (one.real, one.double))
    return "Expected directory structure" in str(one.real) and len(set(heads)) == 1


def _cancelled(one: Difference) -> bool:
    if not isinstance(one.real, list) or not isinstance(one.double, list):
        return False
    added = one.double[len(one.real) :]
    return one.place == "body" and ["was cancelled" in str(more) for more in added] == [True]


def _bytes(one: Difference) -> bool:
    return (one.app, one.real, one.double) == ("odd_values", "ab", "YWI=")


def _kept(one: Difference) -> bool:
    path = str(one.real).removeprefix("memory://")
    return one.place.endswith("canonicalUri") and f"state://{path}" == one.double


KINDS = (
    Explained(
        "The status is the same; the double says what was raised, the real server keeps it in its "
        "log.",
        _hidden,
    ),
    Explained(
        "The status is the same; the double says why the agent does not load, with file and line.",
        _load,
    ),
    Explained("The double's detail is one sentence without the layout of directories.", _layout),
    Explained(
        "A `root_agent` that is no agent is 500 in the double, as all that does not load, and 404 "
        "in the real server.",
        _unfit,
    ),
    Explained(
        "An agent that cancels itself ends a stream with an error in the double.", _cancelled
    ),
    Explained(
        "Bytes in state and results are base64 in the double's sessions, as in events on both; the "
        "real server's sessions have them as UTF-8, and fail where they are not.",
        _bytes,
    ),
    Explained("With a database the double's artifacts are at `state://`.", _kept),
)


def reason(difference: Difference) -> str | None:
    """Return why a difference may be, or None if it may not."""
    return next((one.reason for one in KINDS if one.covers(difference)), None)


def unexplained(compared: Compared) -> list[Difference]:
    """Return the differences of a case that have no reason."""
    return [one for one in compared.differences if reason(one) is None]
