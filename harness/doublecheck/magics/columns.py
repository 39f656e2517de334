"""How the outcomes of a cell on two platforms look: side by side, or below each other."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from doublecheck.errors import DoubleCheckError
from doublecheck.notebook.display.elements import Markup, element
from doublecheck.notebook.display.markup import (
    BAD,
    GOOD,
    badge,
    box,
    code,
    columns,
    pre,
    quiet,
    title,
)
from doublecheck.results import BashResult, CodeResult

if TYPE_CHECKING:
    from doublecheck.comparing.differences import Difference
    from doublecheck.magics.both import Outcome, Side, SideBySide

_SHOWN_DIFFERENCES = 10
_SHOWN_CHARS = 120


def html(both: SideBySide) -> Markup:
    """Return both as columns, below them what differs."""
    verdict = badge("the same", GOOD) if both.same else badge("they differ", BAD)
    told = [element("div", code(line)) for line in _told(both)]
    return box(
        columns(*map(_column, both.sides)), element("div", verdict, style="margin:.4em 0"), *told
    )


def text(both: SideBySide) -> str:
    """Return both below each other, and what differs."""
    parts = [f"── {side.name}: {side.where}\n{plain(side.outcome)}" for side in both.sides]
    names = " and ".join(side.name for side in both.sides)
    verdict = f"{names} say the same." if both.same else f"{names} differ:"
    return "\n".join([*parts, f"── {verdict}", *_told(both)])


def plain(outcome: Outcome) -> str:
    """Return what code said, as a terminal shows it."""
    if isinstance(outcome, CodeResult):
        return "\n".join(_said(outcome)) or "(no output)"
    if isinstance(outcome, BashResult):
        said = f"{outcome.stdout}{outcome.stderr}".rstrip("\n")
        return f"{said}\n(exit code {outcome.exit_code})".lstrip("\n")
    return f"{type(outcome).__name__}: {outcome}"


def _said(result: CodeResult) -> Iterator[str]:
    for output in result.outputs:
        if output.output_type == "error":
            yield "\n".join(output.traceback or (f"{output.ename}: {output.evalue}",))
        else:
            said = output.text or (output.data or {}).get("text/plain", "")
            yield str(said).rstrip("\n")
    if not result.success and result.error is None:
        yield result.message


def _column(side: Side) -> Markup:
    return element("div", title(side.name, quiet(side.where)), _outcome(side.outcome))


def _outcome(outcome: Outcome) -> Markup:
    if isinstance(outcome, DoubleCheckError):
        return pre(plain(outcome), tone=BAD)
    if isinstance(outcome, CodeResult) and not outcome.outputs and outcome.success:
        return pre(quiet("no output"))
    return Markup(outcome._repr_mimebundle_()["text/html"])


def _told(both: SideBySide) -> Iterator[str]:
    one, other = (side.name for side in both.sides)
    for difference in both.differences[:_SHOWN_DIFFERENCES]:
        yield _difference(difference, one, other)
    more = len(both.differences) - _SHOWN_DIFFERENCES
    if more > 0:
        yield f"… and {more} more"


def _difference(difference: Difference, one: str, other: str) -> str:
    path = difference.path.removeprefix("$.")
    if difference.kind == "only double":
        return f"{path}: only {one}: {_short(difference.double)}"
    if difference.kind == "only live":
        return f"{path}: only {other}: {_short(difference.live)}"
    what = "" if difference.kind == "value" else f"{difference.kind}: "
    return f"{path}: {what}{one} {_short(difference.double)}, {other} {_short(difference.live)}"


def _short(value: Any) -> str:
    shower = reprlib.Repr()
    shower.maxstring = shower.maxother = _SHOWN_CHARS
    return shower.repr(value)
