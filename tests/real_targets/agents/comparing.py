"""Compare both servers' answers to a case, and explain the differences that are allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.real_targets.agents.cases import Case
from tests.real_targets.agents.conversation import Answer, Conversation

_SHOWN = 300


@dataclass(frozen=True)
class Difference:
    """A place in an answer, with the values of the real server and of the double."""

    app: str
    request: str
    place: str
    real: object
    double: object

    def __str__(self) -> str:
        real, double = (str(value)[:_SHOWN] for value in (self.real, self.double))
        request = f"{self.app}: {self.request[:_SHOWN]}"
        return f"{request}\n  {self.place}\n    real   {real}\n    double {double}"


@dataclass(frozen=True)
class Compared:
    """A case with the answers of both servers."""

    case: Case
    requests: int
    events: int
    differences: tuple[Difference, ...]


def compare(case: Case, real: str, double: str) -> Compared:
    """Run a case on both servers."""
    answers = [_answers(case, url) for url in (real, double)]
    differences = tuple(_between(case.app, *answers))
    total = sum(len(run.body) for run in answers[0] if "/run" in run.request and run.status == 200)
    return Compared(case, len(answers[0]), total, differences)


def _answers(case: Case, url: str) -> list[Answer]:
    talk = Conversation(url, case.app)
    case.script(talk)
    return talk.normalized()


def _between(app: str, real: list[Answer], double: list[Answer]) -> Iterator[Difference]:
    for first, second in zip(real, double, strict=False):
        if first.request != second.request:
            yield Difference(app, first.request, "asked", first.request, second.request)
            return
        if first.status != second.status:
            yield Difference(app, first.request, "status", first.status, second.status)
        for place, real_value, double_value in _differing(first.body, second.body, ""):
            yield Difference(app, first.request, place or "body", real_value, double_value)
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
        for number, (first, second) in enumerate(zip(real, double, strict=True)):
            yield from _differing(first, second, f"{place}[{number}]")
    elif real != double or type(real) is not type(double):
        yield place, real, double


@dataclass(frozen=True)
class Explained:
    """A kind of difference and its reason."""

    reason: str
    covers: Callable[[Difference], bool]


def _hidden(diff: Difference) -> bool:
    detail = diff.double.get("detail") if isinstance(diff.double, dict) else None
    return diff.real == "Internal Server Error" and detail is not None


def _load(diff: Difference) -> bool:
    text = str(diff.double)
    return diff.real == "Failed to load agent" and text.startswith("Failed to load agent '")


def _unfit(diff: Difference) -> bool:
    of_it = "/app-info" in diff.request or diff.app == "wrong_type"
    unfit = (404, 500) == (diff.real, diff.double) or "is not a BaseAgent" in str(diff.real)
    return of_it and diff.app == "wrong_type" and unfit


def _layout(diff: Difference) -> bool:
    heads = (str(text).split(". ")[0] for text in (diff.real, diff.double))
    return "Expected directory structure" in str(diff.real) and len(set(heads)) == 1


def _cancelled(diff: Difference) -> bool:
    if not isinstance(diff.real, list) or not isinstance(diff.double, list):
        return False
    added = diff.double[len(diff.real) :]
    return diff.place == "body" and ["was cancelled" in str(more) for more in added] == [True]


def _bytes(diff: Difference) -> bool:
    return (diff.app, diff.real, diff.double) == ("odd_values", "ab", "YWI=")


def _is_saved(diff: Difference) -> bool:
    path = str(diff.real).removeprefix("memory://")
    return diff.place.endswith("canonicalUri") and f"state://{path}" == diff.double


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
    Explained("With a database the double's artifacts are at `state://`.", _is_saved),
)


def reason(difference: Difference) -> str | None:
    """Return the reason for a difference, or None if it is not allowed."""
    return next((kind.reason for kind in KINDS if kind.covers(difference)), None)


def unexplained(compared: Compared) -> list[Difference]:
    """Return the differences of a case that have no reason."""
    return [difference for difference in compared.differences if reason(difference) is None]
