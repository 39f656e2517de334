"""How values are shown: in notebooks, as secrets, and as untrusted text.

A class names the function that draws it in a notebook. Values do not import their displays, so a
program without a notebook does not import them either.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Mapping
from typing import Any, ClassVar, SupportsIndex, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)

_SHOWN_CHARS = 60
_TOKEN = re.compile(r"([?&]Authorization=)[^&#]*", re.IGNORECASE)
_NAMED, _NAMED_CHARS = 3, 160

# characters that control terminals, that HTML does not allow, or that disguise text
_HIDING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "·")


class Shown:
    """A value that a notebook shows as HTML; other environments show its repr.

    ``class Report(Shown, drawn_by="reports.html.report")`` is drawn by that function of
    doublecheck. Its module is imported when a notebook first shows such a value. The function
    returns HTML, or a bundle of MIME types.
    """

    __slots__ = ()
    _drawn_by: ClassVar[str] = ""

    def __init_subclass__(cls, drawn_by: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if drawn_by:
            cls._drawn_by = drawn_by

    def _repr_mimebundle_(self, **_kwargs: Any) -> dict[str, Any]:
        """Show the value in a notebook."""
        if not self._drawn_by:
            return {"text/plain": repr(self)}
        module, _, function = self._drawn_by.rpartition(".")
        draw = getattr(importlib.import_module(f"doublecheck.{module}"), function)
        drawn = draw(self)
        bundle = drawn if isinstance(drawn, Mapping) else {"text/html": str(drawn)}
        return {"text/plain": repr(self), **bundle}


class Series(tuple[T_co, ...], Shown):
    """A tuple with its own display; its slices have the same display."""

    __slots__ = ()
    _noun: ClassVar[str] = "value"

    def __init_subclass__(cls, noun: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if noun:
            cls._noun = noun

    @overload
    def __getitem__(self, index: SupportsIndex) -> T_co: ...

    @overload
    def __getitem__(self, index: slice) -> Series[T_co]: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            return self._with(tuple(self)[index])
        return super().__getitem__(index)

    def _with(self, some: tuple[T_co, ...]) -> Series[T_co]:
        """Return a series of the same kind with some of the values."""
        return type(self)(some)

    def __repr__(self) -> str:
        named = [repr(item) for item in tuple(self)[:_NAMED]]
        while len(", ".join(named)) > _NAMED_CHARS:
            named.pop()
        if len(named) < len(self):
            named.append("...")
        return f"<{counted(len(self), self._noun)}{': ' if named else ''}{', '.join(named)}>"


def counted(count: int, noun: str) -> str:
    """Return how many of something there are, in words."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def notebook_shell() -> Any:
    """Return the shell of the notebook that this code runs in, or None outside of notebooks."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if hasattr(shell, "kernel") else None


def short(text: str) -> str:
    """Return the repr of a text, shortened if it is long."""
    return repr(text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 3] + "...")


def without_token(url: str) -> str:
    """Return a URL without the token of a session's Endpoint."""
    return _TOKEN.sub(r"\1***", url)


def clock_time(seconds: float) -> str:
    """Return a duration as a clock shows it: ``29:58``."""
    total = max(int(seconds), 0)
    hours, minutes = divmod(total // 60, 60)
    return f"{hours}:{minutes:02}:{total % 60:02}" if hours else f"{minutes:02}:{total % 60:02}"


def visible(text: str) -> str:
    """Make the control characters of a text visible, including those of writing direction."""
    return _HIDING.sub(_picture, text)


def without_controls(text: str) -> str:
    """Return a text for one line of a terminal, with a dot for each control character."""
    return text.translate(_CONTROLS)


def _picture(match: re.Match[str]) -> str:
    character = match[0]
    return chr(0x2400 + ord(character)) if character < " " else "\ufffd"


class Secret:
    """A string that is shown as ``***``. ``reveal()`` returns it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the string itself."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"
