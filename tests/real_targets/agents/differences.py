"""What may differ between ``adk api_server`` and the double, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.real_targets.agents.comparing import Compared, Difference


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
    added = one.double[len(one.real) :] if isinstance(one.double, list) else ()
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
