"""The questions to a kernel: completions, and the value of an expression.

A question is not an execution: it has no execution count and no outputs.
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
    """A kernel could not evaluate an expression."""


class Question:
    """A request whose reply is the answer; ``finished`` is done when the reply has arrived."""

    def __init__(self) -> None:
        self.msg_id = ""
        self.answer: Mapping[str, Any] = {}
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_iopub(self, _msg_type: str, _content: Mapping[str, Any]) -> None:
        """Ignore the outputs."""

    def on_reply(self, content: Mapping[str, Any]) -> None:
        self.answer = content
        settle(self.finished)

    def on_no_reply(self) -> None:
        """Do nothing, because the caller has given up already."""


@dataclass(frozen=True)
class Completion:
    """The matches that can replace the code from character ``start`` to ``end``."""

    matches: tuple[str, ...]
    start: int
    end: int


# Python kernels complete without jedi, which reads all of Python's stubs before its first answer
# (5 s). IPython looks at the living objects instead, which is fast unless it calls slow code of the
# session, for example a ``__dir__``. Such code is interrupted after a second.
async def complete(kernel: Kernel, code: str, position: int) -> Completion:
    """Complete code with an idle kernel; return no matches if it takes more than a second."""
    content = {"code": code, "cursor_pos": position}
    answer = await kernel.ask("complete_request", content, PATIENCE_S)
    return no_completion(position) if answer is None else _completion(answer, position)


def no_completion(position: int) -> Completion:
    """Return a completion without matches."""
    return Completion((), position, position)


def _completion(answer: Mapping[str, Any], position: int) -> Completion:
    """Read an answer; if it is malformed, as code of the session can make it, return no matches."""
    matches, start, end = (answer.get(n) for n in ("matches", "cursor_start", "cursor_end"))
    if not (isinstance(matches, list) and matches and type(start) is type(end) is int):
        return no_completion(position)
    if not 0 <= start <= position <= end:
        return no_completion(position)
    return Completion(tuple(map(str, matches)), start, end)


def expression_request(expression: str) -> dict[str, Any]:
    """Return the content of an execute_request that only evaluates an expression."""
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
