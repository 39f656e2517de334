"""``%%sandbox --both``: what a cell came to on two platforms, and whether that is the same."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from doublecheck.comparing.references import Pairs
from doublecheck.comparing.structure import compare as differences_of
from doublecheck.errors import DoubleCheckError, RefusedError
from doublecheck.live import of_outputs
from doublecheck.notebook_repr import Shown
from doublecheck.results import BashResult, CodeResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from doublecheck.comparing.differences import Difference
    from doublecheck.magics.platforms import Named
    from doublecheck.results import Output

Outcome: TypeAlias = "CodeResult | BashResult | DoubleCheckError"

_ASIDE = frozenset({"execution_count", "metadata"})


@dataclass(frozen=True)
class Side:
    """What a cell came to on a platform: its result, or why there is none."""

    name: str
    where: str
    outcome: Outcome


@dataclass(frozen=True, repr=False)
class SideBySide(Shown, drawn_by="magics.columns.html"):
    """What a cell came to on two platforms, with what differs between them.

    In a difference, ``double`` is the value of the first and ``live`` that of the other.
    """

    sides: tuple[Side, Side]
    differences: tuple[Difference, ...]

    @property
    def same(self) -> bool:
        """Whether both say the same, ids and times aside."""
        return not self.differences

    def __repr__(self) -> str:
        from doublecheck.magics import columns

        return columns.text(self)


def compare(
    both: tuple[Named, Named], call: Callable[[Named], CodeResult | BashResult]
) -> SideBySide:
    """Run a cell on two platforms, one after the other, and compare what it came to."""
    one, other = (_side(named, call) for named in both)
    outcomes = (one.outcome, other.outcome)
    refused = any(isinstance(outcome, DoubleCheckError) for outcome in outcomes)
    ours, theirs = map(_status_alone if refused else _document, outcomes)
    return SideBySide((one, other), tuple(differences_of(ours, theirs, Pairs())))


def _side(named: Named, call: Callable[[Named], CodeResult | BashResult]) -> Side:
    where = f"{named.platform.target.kind} at {named.platform.url}"
    try:
        return Side(named.name, where, call(named))
    except DoubleCheckError as error:
        return Side(named.name, where, error)


def _document(outcome: Outcome) -> dict[str, Any]:
    """Return what is compared: what code said, not how often a kernel had run some before."""
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
    """Yield what was said; where a stream was cut into pieces says nothing."""
    for (kind, name), group in groupby(outputs, key=lambda one: (one.output_type, one.name)):
        if kind == "stream":
            text = "".join(one.text or "" for one in group)
            yield {"type": kind, "name": name, "text": text}
            continue
        for message in of_outputs(group):
            said = {key: one for key, one in message.content.items() if key not in _ASIDE}
            yield {"type": kind, **said, **_data(message.content)}


def _data(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a bundle with sums in place of images, which would pass for ids, and fill pages."""
    if "data" not in content:
        return {}
    data = content["data"] or {}
    told = {key: _sum(one) if key.startswith("image/") else one for key, one in data.items()}
    return {"data": told}


def _sum(image: Any) -> str:
    text = str(image)
    return f"{len(text)} characters, checksum {zlib.crc32(text.encode())}"
