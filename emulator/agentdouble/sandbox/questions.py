"""What a kernel is asked besides running code: completions, and the value of an expression.

A question is no execution: it is not counted, and it has no outputs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentdouble.sandbox.execution import settle

if TYPE_CHECKING:
    from agentdouble.sandbox.kernel import Kernel

PATIENCE_S = 1.0
_ASKED = "asked"


class ExpressionError(Exception):
    """An expression that a kernel was asked for has no value."""


class Question:
    """A request whose reply is the answer; it is ``finished`` when that is here."""

    def __init__(self) -> None:
        self.msg_id = ""
        self.answer: Mapping[str, Any] = {}
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_iopub(self, _msg_type: str, _content: Mapping[str, Any]) -> None:
        """Ignore what is put out meanwhile."""

    def on_reply(self, content: Mapping[str, Any]) -> None:
        self.answer = content
        settle(self.finished)

    def on_no_reply(self) -> None:
        """Expect nothing more: who asked has given up."""


@dataclass(frozen=True)
class Completion:
    """The matches that could stand in code from ``start`` to ``end``, counted in characters."""

    matches: tuple[str, ...]
    start: int
    end: int


# Python kernels complete without jedi, which reads all of Python's stubs before its first answer
# (5 s): IPython looks at the living objects. That waits for nothing, unless code of the session's
# own (a ``__dir__``, say) takes its time, which is interrupted after a second.
async def complete(kernel: Kernel, code: str, position: int) -> Completion:
    """Ask an idle kernel to complete code; without an answer in a second there are no matches."""
    content = {"code": code, "cursor_pos": position}
    answer = await kernel.ask("complete_request", content, PATIENCE_S)
    return no_completion(position) if answer is None else _completion(answer, position)


def no_completion(position: int) -> Completion:
    """Return a completion without matches."""
    return Completion((), position, position)


def _completion(answer: Mapping[str, Any], position: int) -> Completion:
    """Read an answer; one that makes no sense has no matches: the session's code may give it."""
    matches, start, end = (answer.get(n) for n in ("matches", "cursor_start", "cursor_end"))
    if not (isinstance(matches, list) and matches and type(start) is type(end) is int):
        return no_completion(position)
    if not 0 <= start <= position <= end:
        return no_completion(position)
    return Completion(tuple(map(str, matches)), start, end)


def expression_request(expression: str) -> dict[str, Any]:
    """Return the content of an execute_request that runs nothing but evaluates an expression."""
    return {
        "code": "",
        "silent": True,
        "store_history": False,
        "user_expressions": {_ASKED: expression},
        "allow_stdin": False,
        "stop_on_error": False,
    }


def value_of(answer: Mapping[str, Any]) -> str:
    """Return the text of the expression's value; raise ExpressionError if it has none."""
    found = answer.get("user_expressions", {}).get(_ASKED, {})
    if found.get("status") != "ok":
        raise ExpressionError(f"{found.get('ename')}: {found.get('evalue')}")
    return str(found["data"]["text/plain"])
