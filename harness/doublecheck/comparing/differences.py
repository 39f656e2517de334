"""The differences that a comparison finds: their places, and the unknowns that explain them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from doublecheck.notebook_repr import Shown

Kind = Literal["value", "type", "only double", "only live", "order"]


class Class(str, Enum):
    """The class of a difference, an answer or a conversation; the worst comes first.

    A difference is assumed if an unknown that the double's answer relied on explains it.
    """

    DIVERGES = "diverges"
    ONLY_LIVE = "only live"
    ONLY_DOUBLE = "only double"
    ASSUMED = "assumed"
    SAME = "same"

    @property
    def harmless(self) -> bool:
        """Whether the specification allows it."""
        return self in (Class.ASSUMED, Class.SAME)


@dataclass(frozen=True)
class Difference(Shown, drawn_by="twins.notebook.difference"):
    """One place where two answers differ; ids and times are shown as references.

    ``path`` is ``status``, ``content-type``, or a JSON path, which begins with ``events[n]`` inside
    a stream. ``because`` names the unknown that explains the difference, if any.
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
        what = "" if self.kind == "value" else f"{self.kind}: "
        return f"{self.path}: {what}double {self.double!r}, live {self.live!r}{reason}"


def worst(classes: Iterable[Class]) -> Class:
    """Return the worst of some classes, ``same`` if there are none."""
    return min(classes, key=list(Class).index, default=Class.SAME)
