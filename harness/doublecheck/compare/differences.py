"""The results of a comparison: the differences of two answers, call by call and part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from doublecheck.core.exit_codes import ExitCode
from doublecheck.core.notebook_repr import Shown, counted
from doublecheck.wire.exchanges import Exchange

Kind = Literal["value", "type", "only double", "only live"]
Side = Literal["double", "live"]


class Class(str, Enum):
    """The class of a difference, an answer or a conversation, worst first.

    A difference is assumed if an unknown that the double's answer relied on explains it.
    """

    DIVERGES = "diverges"
    ONLY_LIVE = "only live"
    ONLY_DOUBLE = "only double"
    ASSUMED = "assumed"
    SAME = "same"

    @property
    def harmless(self) -> bool:
        """Whether the specification allows the difference."""
        return self in (Class.ASSUMED, Class.SAME)


@dataclass(frozen=True)
class Difference:
    """One place where two answers differ; ids and times are shown as references.

    ``path`` is ``status``, ``content-type``, or a JSON path, which begins with ``events[n]`` inside
    a stream. ``because`` names the unknown that explains the difference, if any, and the
    alternative under which the double answers as the other platform, if there is one.
    """

    kind: Kind
    path: str
    double: Any = None
    live: Any = None
    because: str | None = None

    @property
    def cls(self) -> Class:
        """The class of the difference."""
        if self.because is not None:
            return Class.ASSUMED
        if self.kind == "only live":
            return Class.ONLY_LIVE
        return Class.ONLY_DOUBLE if self.kind == "only double" else Class.DIVERGES

    def __repr__(self) -> str:
        return f"<Difference {self.cls.value}: {self}>"

    def __str__(self) -> str:
        reason = f" ({self.because})" if self.because else ""
        if self.kind in ("only live", "only double"):
            value = self.live if self.kind == "only live" else self.double
            return f"{self.path}: {self.kind}: {value!r}{reason}"
        label = "" if self.kind == "value" else f"{self.kind}: "
        return f"{self.path}: {label}double {self.double!r}, live {self.live!r}{reason}"


def worst(classes: Iterable[Class]) -> Class:
    """Return the worst of some classes, ``same`` if there are none."""
    return min(classes, key=list(Class).index, default=Class.SAME)


@dataclass(frozen=True)
class Compared:
    """One call on both platforms, without secrets. If a side did not make the call, it is None.

    ``only`` is the side that alone has the surface of the call, if the other lacks it.
    """

    operation: str
    double: Exchange | None
    live: Exchange | None
    differences: tuple[Difference, ...] = ()
    only: Side | None = None

    @property
    def cls(self) -> Class:
        """The class of the call."""
        if self.only is not None:
            return Class.ONLY_DOUBLE if self.only == "double" else Class.ONLY_LIVE
        if self.live is None:
            return Class.ONLY_DOUBLE
        if self.double is None:
            return Class.ONLY_LIVE
        return worst(difference.cls for difference in self.differences)


@dataclass(frozen=True)
class ConversationPart:
    """A part of a conversation; ``skipped`` is the reason why it was skipped.

    ``only`` says which platform alone has its surface: ``only the double has a2a``.
    """

    name: str
    calls: tuple[Compared, ...] = ()
    skipped: str | None = None
    only: str = ""

    @property
    def cls(self) -> Class:
        """The class of the part."""
        return worst(call.cls for call in self.calls)


@dataclass(frozen=True)
class Comparison(Shown, drawn_by="compare.page.frame"):
    """A whole conversation on both platforms. ``double`` and ``live`` are their addresses.

    ``name`` is the name of the platform at ``live``.
    """

    double: str
    live: str
    parts: tuple[ConversationPart, ...]
    name: str = "live"

    @property
    def calls(self) -> tuple[Compared, ...]:
        """Every call, in order."""
        return tuple(call for part in self.parts for call in part.calls)

    @property
    def cls(self) -> Class:
        """The class of the conversation."""
        return worst(part.cls for part in self.parts)

    @property
    def outcome(self) -> str:
        """The class of the conversation in words. Without a call there is no verdict."""
        return self.cls.value if self._compared else "nothing compared"

    @property
    def exit_code(self) -> ExitCode:
        """The result of the comparison as the exit code of ``doublecheck twin``."""
        if not self._compared:
            return ExitCode.NOTHING_CHECKED
        return ExitCode.PASSED if self.cls.harmless else ExitCode.FAILED

    @property
    def _compared(self) -> bool:
        """Whether a side has answered any call: two platforms that are down are not the same."""
        sides = (side for call in self.calls for side in (call.double, call.live))
        return any(side is not None and side.status is not None for side in sides)

    def counts(self) -> Mapping[Class, int]:
        """Count the calls by class, worst first."""
        counts = Counter(call.cls for call in self.calls)
        return {cls: counts[cls] for cls in Class if counts[cls]}

    def summary(self) -> str:
        """Return one line: the calls counted by class, and the skipped parts."""
        counts = ", ".join(f"{count} {cls.value}" for cls, count in self.counts().items())
        skipped = sum(1 for part in self.parts if part.skipped)
        parts = f"; {skipped} of {len(self.parts)} parts were skipped" if skipped else ""
        calls = counted(len(self.calls), "call")
        return f"{calls}: {counts or 'nothing was compared'}{parts}."

    def __repr__(self) -> str:
        counts = "".join(f", {count} {cls.value}" for cls, count in self.counts().items())
        return f"<Comparison {self.outcome}: {counted(len(self.calls), 'call')}{counts}>"
