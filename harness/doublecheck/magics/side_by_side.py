"""Compare the outcomes of a cell on two platforms, and show both (``%%sandbox --both``)."""

from __future__ import annotations

import reprlib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from doublecheck.comparing import structure
from doublecheck.comparing.declared_fields import Field
from doublecheck.comparing.fields import Fields
from doublecheck.comparing.references import Pairs
from doublecheck.errors import DoubleCheckError, RefusedError
from doublecheck.notebook.display.markup import (
    BAD,
    GOOD,
    Markup,
    badge,
    box,
    code,
    columns,
    element,
    pre,
    quiet,
    title,
)
from doublecheck.notebook_repr import Shown
from doublecheck.values.sandbox import BashResult, CodeResult, of_outputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from doublecheck.comparing.differences import Difference
    from doublecheck.magics.platforms import Named
    from doublecheck.values.sandbox import Output

Outcome: TypeAlias = "CodeResult | BashResult | DoubleCheckError"

_SHOWN_DIFFERENCES = 10
_SHOWN_CHARS = 120
_ASIDE = frozenset({"execution_count", "metadata"})
_CELL = "a cell"
_FIELDS = Fields(
    _CELL,
    [Field("traceback", (_CELL,), ("$.outputs[*].traceback",), "it names files of the platform")],
)


@dataclass(frozen=True)
class Side:
    """The outcome of a cell on a platform: its result, or the error."""

    name: str
    where: str
    outcome: Outcome


@dataclass(frozen=True, repr=False)
class SideBySide(Shown, drawn_by="magics.side_by_side.html"):
    """The outcomes of a cell on two platforms, with their differences.

    In a difference, ``double`` is the value of the first platform and ``live`` that of the second.
    """

    sides: tuple[Side, Side]
    differences: tuple[Difference, ...]

    @property
    def same(self) -> bool:
        """Whether both outcomes are the same, except for tracebacks and addresses in memory."""
        return not self.differences

    def __repr__(self) -> str:
        return text(self)


def compare(
    both: tuple[Named, Named], call: Callable[[Named], CodeResult | BashResult]
) -> SideBySide:
    """Run a cell on two platforms, one after the other, and compare the outcomes."""
    one, other = (_side(named, call) for named in both)
    outcomes = (one.outcome, other.outcome)
    refused = any(isinstance(outcome, DoubleCheckError) for outcome in outcomes)
    ours, theirs = map(_status_alone if refused else _document, outcomes)
    found = structure.compare(ours, theirs, Pairs(), _FIELDS)
    return SideBySide((one, other), tuple(found))


def _side(named: Named, call: Callable[[Named], CodeResult | BashResult]) -> Side:
    where = f"{named.platform.target.kind} at {named.platform.url}"
    try:
        return Side(named.name, where, call(named))
    except DoubleCheckError as error:
        return Side(named.name, where, error)


def _document(outcome: Outcome) -> dict[str, Any]:
    """Return the parts of an outcome that are compared; the execution count is not."""
    if isinstance(outcome, CodeResult):
        return {"status": outcome.status, "outputs": list(_outputs(outcome.outputs))}
    told = ("status", "exit_code", "stdout", "stderr")
    return {name: getattr(outcome, name) for name in told}


def _status_alone(outcome: Outcome) -> dict[str, Any]:
    if not isinstance(outcome, DoubleCheckError):
        return {"status": outcome.status}
    code = outcome.code if isinstance(outcome, RefusedError) else ""
    return {"status": f"refused: {code or type(outcome).__name__}"}


def _outputs(outputs: Iterable[Output]) -> Iterator[Mapping[str, Any]]:
    """Yield the outputs; consecutive pieces of a stream are joined."""
    for (kind, name), group in groupby(outputs, key=lambda one: (one.output_type, one.name)):
        if kind == "stream":
            text = "".join(one.text or "" for one in group)
            yield {"type": kind, "name": name, "text": text}
            continue
        for message in of_outputs(group):
            said = {key: one for key, one in message.content.items() if key not in _ASIDE}
            yield {"type": kind, **said, **_data(message.content)}


def _data(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a bundle with checksums instead of images, which look like ids and are very long."""
    if "data" not in content:
        return {}
    data = content["data"] or {}
    told = {key: _sum(one) if key.startswith("image/") else one for key, one in data.items()}
    return {"data": told}


def _sum(image: Any) -> str:
    text = str(image)
    return f"{len(text)} characters, checksum {zlib.crc32(text.encode())}"


def html(both: SideBySide) -> Markup:
    """Return both outcomes as columns, with the differences below."""
    verdict = badge("the same", GOOD) if both.same else badge("they differ", BAD)
    told = [element("div", code(line)) for line in _difference_lines(both)]
    return box(
        columns(*map(_column, both.sides)), element("div", verdict, style="margin:.4em 0"), *told
    )


def text(both: SideBySide) -> str:
    """Return both outcomes as text, with the differences below."""
    parts = [f"── {side.name}: {side.where}\n{plain(side.outcome)}" for side in both.sides]
    names = " and ".join(side.name for side in both.sides)
    verdict = f"{names} say the same." if both.same else f"{names} differ:"
    return "\n".join([*parts, f"── {verdict}", *_difference_lines(both)])


def plain(outcome: Outcome) -> str:
    """Return an outcome as a terminal shows it."""
    if isinstance(outcome, CodeResult):
        return "\n".join(_output_lines(outcome)) or "(no output)"
    if isinstance(outcome, BashResult):
        said = f"{outcome.stdout}{outcome.stderr}".rstrip("\n")
        return f"{said}\n(exit code {outcome.exit_code})".lstrip("\n")
    return f"{type(outcome).__name__}: {outcome}"


def _output_lines(result: CodeResult) -> Iterator[str]:
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


def _difference_lines(both: SideBySide) -> Iterator[str]:
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
