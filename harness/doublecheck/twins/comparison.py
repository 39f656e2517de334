"""The results of the same calls on two platforms, as values."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from doublecheck.comparing.answers import Answer, differences
from doublecheck.comparing.differences import Class, Difference, worst
from doublecheck.comparing.operations import operation
from doublecheck.comparing.references import Pairs
from doublecheck.comparing.requests import Request, learn
from doublecheck.exit_codes import ExitCode
from doublecheck.notebook_repr import Shown, counted
from doublecheck.target.target import Target
from doublecheck.wire.exchanges import Exchange


@dataclass(frozen=True)
class Compared(Shown, drawn_by="twins.notebook.call"):
    """One call on both platforms, without secrets; None for a side that did not make it."""

    operation: str
    double: Exchange | None
    live: Exchange | None
    differences: tuple[Difference, ...] = ()

    @property
    def cls(self) -> Class:
        """The class of the call."""
        if self.live is None:
            return Class.ONLY_DOUBLE
        if self.double is None:
            return Class.ONLY_LIVE
        return worst(one.cls for one in self.differences)

    def __repr__(self) -> str:
        differences = counted(len(self.differences), "difference")
        return f"<Compared {self.operation}: {self.cls.value}, {differences}>"


@dataclass(frozen=True)
class Part(Shown, drawn_by="twins.notebook.part"):
    """A part of a conversation; ``skipped`` is the reason why it was skipped."""

    name: str
    calls: tuple[Compared, ...] = ()
    skipped: str | None = None

    @property
    def cls(self) -> Class:
        """The class of the part."""
        return worst(call.cls for call in self.calls)

    def __repr__(self) -> str:
        calls = counted(len(self.calls), "call")
        told = f"not carried out: {self.skipped}" if self.skipped else f"{self.cls.value}, {calls}"
        return f"<Part {self.name}: {told}>"


@dataclass(frozen=True)
class Comparison(Shown, drawn_by="twins.notebook.render"):
    """A whole conversation on both platforms; ``double`` and ``live`` are their addresses."""

    double: str
    live: str
    parts: tuple[Part, ...]

    @property
    def calls(self) -> tuple[Compared, ...]:
        """Every call, in order."""
        return tuple(call for part in self.parts for call in part.calls)

    @property
    def cls(self) -> Class:
        """The class of the conversation."""
        return worst(part.cls for part in self.parts)

    @property
    def told(self) -> str:
        """The class of the conversation in words; without a call it is no verdict."""
        return self.cls.value if self._compared else "nothing compared"

    @property
    def exit_code(self) -> ExitCode:
        """What the comparison comes to, as the exit code of ``doublecheck twin``."""
        if not self._compared:
            return ExitCode.NOTHING_CHECKED
        return ExitCode.PASSED if self.cls.harmless else ExitCode.FAILED

    @property
    def _compared(self) -> bool:
        """Whether a side has answered any call: two platforms that are gone are not the same."""
        sides = (side for call in self.calls for side in (call.double, call.live))
        return any(side is not None and side.status is not None for side in sides)

    def counts(self) -> Mapping[Class, int]:
        """Count the calls by class, the worst first."""
        counts = Counter(call.cls for call in self.calls)
        return {cls: counts[cls] for cls in Class if counts[cls]}

    def __repr__(self) -> str:
        told = ", ".join(f"{count} {cls.value}" for cls, count in self.counts().items())
        calls = counted(len(self.calls), "call")
        return f"<Comparison {self.told}: {calls}{told and f', {told}'}>"


def compared(
    double: Sequence[Exchange], live: Sequence[Exchange], pairs: Pairs
) -> Iterator[Compared]:
    """Match the calls of two sides by operation and order, and yield the comparisons."""
    ours, theirs = [_operation(one) for one in double], [_operation(one) for one in live]
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    for tag, start, end, live_start, live_end in matcher.get_opcodes():
        if tag == "equal":
            for one, other in zip(double[start:end], live[live_start:live_end], strict=True):
                yield pair(one, other, pairs)
        else:
            yield from (Compared(_operation(one), one, None) for one in double[start:end])
            yield from (Compared(_operation(one), None, one) for one in live[live_start:live_end])


def pair(double: Exchange, live: Exchange, pairs: Pairs) -> Compared:
    """Compare one call that both sides made."""
    learn(_request(double), _request(live), pairs)
    asked = double.request.content.decode("utf-8", "replace")
    found = differences(answer(double), answer(live), pairs, _operation(double), asked)
    return Compared(_operation(double), double, live, found)


def answer(exchange: Exchange) -> Answer:
    """Return the outcome of a request as an Answer to compare."""
    headers = {name.lower(): value for name, value in exchange.headers.items()}
    return Answer(exchange.status, headers, exchange.body, exchange.error, exchange.body_cut)


def seeded(double: Target, live: Target) -> Pairs:
    """Return the pairs of ids that are known to match beforehand."""
    pairs = Pairs()
    pairs.seed("platform", double.url, live.url)
    for surface in ("control_plane", "api_server", "mcp", "a2a"):
        pairs.seed(surface.replace("_", " "), double.at(surface), live.at(surface))
    pairs.seed("host", double.url.partition("://")[2], live.url.partition("://")[2])
    pairs.seed("tool", double.tool_id or "", live.tool_id or "")
    pairs.seed("region", double.region, live.region)
    return pairs


def _request(exchange: Exchange) -> Request:
    request = exchange.request
    return Request(request.url, request.headers, request.content)


def _operation(exchange: Exchange) -> str:
    request = exchange.request
    return operation(request.method, request.url, request.content)
