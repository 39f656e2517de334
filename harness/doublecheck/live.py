"""What code and commands say while they run, as a kernel says it: message by message."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from doublecheck.results import BashResult, CodeResult, Output

Ran = TypeVar("Ran", "CodeResult", "BashResult")

_SAYS = {
    "stream": ("name", "text"),
    "display_data": ("data", "metadata"),
    "execute_result": ("data", "metadata", "execution_count"),
    "error": ("ename", "evalue", "traceback"),
}
_TOLD = ("name", "text", "ename", "evalue", "wait")


@dataclass(frozen=True, repr=False)
class LiveOutput:
    """A message of a kernel's IOPub channel, as Jupyter's messaging protocol has it.

    ``msg_type`` is ``stream``, ``display_data``, ``update_display_data``, ``execute_result``,
    ``clear_output`` or ``error``.
    """

    msg_type: str
    content: Mapping[str, Any]

    def __repr__(self) -> str:
        told = [f"{n}={reprlib.repr(self.content[n])}" for n in _TOLD if n in self.content]
        return f"<LiveOutput {' '.join([self.msg_type, *told, *(self.content.get('data') or ())])}>"


@dataclass(frozen=True)
class Completion:
    """What could stand in code from ``start`` to ``end``, which count its characters."""

    matches: tuple[str, ...]
    start: int
    end: int


OnOutput: TypeAlias = Callable[[LiveOutput], None]


def handed_over(result: Ran, on_output: OnOutput) -> Ran:
    """Hand over the outputs of a result, which is returned."""
    for output in of_outputs(result.outputs):
        on_output(output)
    return result


def of_outputs(outputs: Iterable[Output]) -> Iterator[LiveOutput]:
    """Yield the messages that would have led to these outputs."""
    for output in outputs:
        said = {name: getattr(output, name) for name in _SAYS.get(output.output_type, ())}
        if "traceback" in said:
            said["traceback"] = list(said["traceback"] or ())
        yield LiveOutput(output.output_type, said)
