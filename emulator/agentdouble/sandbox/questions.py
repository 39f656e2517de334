"""The questions to a kernel: completions, the value of an expression, and the variables of its session."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from agentdouble.sandbox.execution import settle

if TYPE_CHECKING:
    from agentdouble.sandbox.kernel import Kernel

PATIENCE_S = 1.0
_NAME = "asked"


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
    """Read an answer; return no matches if it is malformed, which the session's code can cause."""
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
        "user_expressions": {_NAME: expression},
        "allow_stdin": False,
        "stop_on_error": False,
    }


def value_of(answer: Mapping[str, Any]) -> str:
    """Return the text of the expression's value; raise ExpressionError if it has none."""
    result = answer.get("user_expressions", {}).get(_NAME, {})
    if result.get("status") != "ok":
        raise ExpressionError(f"{result.get('ename')}: {result.get('evalue')}")
    return str(result["data"]["text/plain"])


MOST = 500  # variables of an answer
LENGTH = 200  # characters of a variable's text
_LARGEST = MOST * (LENGTH + 300) * 6  # characters of an answer, each of them escaped

State = Literal["idle", "busy", "none", "silent"]


class Variable(TypedDict):
    """A variable: its name, its type, the start of its repr, and the bytes of the object alone."""

    name: str
    type: str
    repr: str
    size: int | None


class Answer(TypedDict):
    """The kernel's answer; ``omitted`` is the number of variables beyond the first ones."""

    variables: list[Variable]
    omitted: int


@dataclass(frozen=True)
class Variables:
    """The variables of a kernel that is "idle".

    A kernel has none if it is "busy", does not exist ("none"), or does not answer within a second
    ("silent"), for example because of an object's ``__repr__``.
    """

    state: State
    variables: tuple[Variable, ...] = ()
    omitted: int = 0


# Large containers and bytes are cut first: reprlib sorts all of a dict, and repr() makes all of the
# text of bytes.
_SOURCE = """
import itertools, json, reprlib, sys
from IPython import get_ipython

short = reprlib.Repr()
short.maxstring = short.maxother = short.maxlong = length
short.maxlist = short.maxtuple = short.maxdict = short.maxset = 10
short.repr_module = lambda module, _: f"<module {module.__name__!r}>"  # without its long path

def cut(value):
    kind = type(value)
    if kind in (bytes, bytearray):
        return value[:length]
    if kind in (set, frozenset) and len(value) > 10:
        return kind(itertools.islice(value, 11))
    if kind is dict and len(value) > 10:
        return dict(itertools.islice(value.items(), 11))
    return value

def attempt(make):
    try:
        return make()
    except Exception as error:
        return f"<{type(error).__name__} in its __repr__>"

def size(value):
    try:
        return int(sys.getsizeof(value))
    except Exception:
        return None

def shown(name, value):
    text = str(attempt(lambda: short.repr(cut(value))))
    return {"name": name, "type": type(value).__name__, "repr": text[:length], "size": size(value)}

shell, missing = get_ipython(), object()
kept = [
    (name, value)
    for name, value in list(shell.user_ns.items())
    if not name.startswith("_") and value is not shell.user_ns_hidden.get(name, missing)
]
answer = json.dumps({
    "variables": [shown(*one) for one in kept[:most]],
    "omitted": max(0, len(kept) - most),
})
"""
_EXPRESSION = (
    f"(lambda own: (__import__('builtins').exec({_SOURCE!r}, own), own['answer'])[1])"
    f"({{'length': {LENGTH}, 'most': {MOST}}})"
)


@cache
def _answer() -> TypeAdapter[Answer]:
    return TypeAdapter(Answer)


async def listed_variables(kernel: Kernel) -> Variables:
    """Return the variables of an idle Python kernel; code that arrives meanwhile has priority."""
    content = expression_request(_EXPRESSION)
    answer = await kernel.ask("execute_request", content, PATIENCE_S)
    if answer is None:
        return Variables("silent" if kernel.alive else "none")
    try:
        text = value_of(answer)
        if len(text) > _LARGEST:
            return Variables("silent")
        listed = _answer().validate_python(json.loads(ast.literal_eval(text)), strict=True)
    # the session's code can change what the question uses, and so what comes back
    except (ExpressionError, ValueError, TypeError, SyntaxError, RecursionError, ValidationError):
        return Variables("silent")
    return Variables("idle", tuple(listed["variables"]), listed["omitted"])
