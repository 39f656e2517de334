"""The variables of a session's Python kernel, as the kernel itself describes them."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from agentdouble.sandbox.expressions import ExpressionError, expression_request, value_of

if TYPE_CHECKING:
    from agentdouble.sandbox.kernel import Kernel

PATIENCE_S = 1.0
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


class _Listing(TypedDict):
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
def _listing() -> TypeAdapter[_Listing]:
    return TypeAdapter(_Listing)


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
        listed = _listing().validate_python(json.loads(ast.literal_eval(text)), strict=True)
    # the session's code can change what the question uses, and so what comes back
    except (ExpressionError, ValueError, TypeError, SyntaxError, RecursionError, ValidationError):
        return Variables("silent")
    return Variables("idle", tuple(listed["variables"]), listed["omitted"])
