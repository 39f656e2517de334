"""A function as an MCP tool (section 4.6, DEC-04).

Schemas, arguments and results are made with pydantic when a function is decorated, without the MCP
SDK. The SDK's own application class reads parameters without annotations as strings, hides the text
of a tool's exception, and leaves out the structured content of a dict without annotation; and a
call of an async tool costs it 21 µs of processor time instead of 14. What else an application
offers is registered with that class (``offers.py``).
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentdouble.apps.contract import location
from agentdouble.apps.mcp.parameters import context_parameter, has_resolved, without
from agentdouble.apps.mcp.tool_arguments import Arguments, UnshowableParameterError
from agentdouble.apps.mcp.tool_results import Results
from agentdouble.errors import DecorationError

if TYPE_CHECKING:
    from agentdouble.apps.mcp.dependencies import Dependencies

_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)


@dataclass(frozen=True)
class Tool:
    """A tool: its name, its parameters, its results, and the function.

    ``context`` is the parameter that takes the context of the request, if there is one, and
    ``dependencies`` are those that are resolved before the call.
    """

    name: str
    description: str
    function: Callable[..., Any]
    arguments: Arguments
    results: Results
    context: str | None = None
    dependencies: Dependencies | None = None

    @property
    def asks(self) -> bool:
        """Whether a call needs the context of its request."""
        return self.context is not None or self.dependencies is not None


def make_tool(
    function: Callable[..., Any],
    names: Mapping[str, Any],
    *,
    name: str | None = None,
    description: str | None = None,
) -> Tool:
    """Return a function as a tool; raise DecorationError if it cannot be one.

    ``names`` are the local names at the decorator, which are used to evaluate annotations that are
    strings.
    """
    _check_kind(function)
    called = _checked_name(function, name)
    signature = signature_of(function, names, "tool")
    context = context_parameter(function, signature, "tool")
    dependencies = _dependencies(function, signature, context)
    apart = [*([context] if context else ()), *(dependencies.parameters if dependencies else ())]
    for parameter in without(signature, *apart).parameters.values():
        _check_parameter(function, parameter)
    try:
        arguments = Arguments(called, signature, apart)
    except UnshowableParameterError as error:
        raise _error(
            function, f"the type of its parameter {error.parameter!r} has no JSON Schema: {error}"
        ) from None
    results = Results(called, signature.return_annotation)
    text = inspect.cleandoc(function.__doc__ or "") if description is None else description
    return Tool(called, text, function, arguments, results, context, dependencies)


def make_agent_tool(function: Callable[..., Any], names: Mapping[str, Any]) -> Tool:
    """Return an ``async (prompt: str) -> str`` as a tool; raise DecorationError for others."""
    if not inspect.iscoroutinefunction(function):
        raise _agent_error(function, "it is not an async function")
    signature = signature_of(function, names, "agent_as_a_tool")
    if list(signature.parameters) != ["prompt"]:
        takes = ", ".join(signature.parameters) or "nothing"
        raise _agent_error(function, f"it takes {takes}")
    prompt = signature.parameters["prompt"]
    if prompt.kind is not prompt.POSITIONAL_OR_KEYWORD:
        raise _agent_error(function, "its prompt is no ordinary parameter")
    if prompt.annotation is not str:
        raise _agent_error(function, "its prompt is not annotated as str")
    if signature.return_annotation is not str:
        raise _agent_error(function, "what it returns is not annotated as str")
    return make_tool(function, names)


def signature_of(
    function: Callable[..., Any], names: Mapping[str, Any], decorator: str
) -> inspect.Signature:
    """Return a function's signature with its annotations as types; raise DecorationError."""
    try:
        return inspect.signature(function, locals={**names}, eval_str=True)
    except Exception as error:  # an annotation may raise anything
        raise DecorationError(
            f"@app.{decorator} reads the annotations of {location(function)}, and one of them cannot "
            f"be read: {error}.",
            decorator=decorator,
        ) from error


# Annotations that are strings may name classes that are local to the function which decorates; only
# its frame has them.
def names_at(depth: int) -> dict[str, Any]:
    """Return the local names of the function that is ``depth`` calls above the caller."""
    return dict(sys._getframe(depth + 1).f_locals)


def _dependencies(
    function: Callable[..., Any], signature: inspect.Signature, context: str | None
) -> Dependencies | None:
    if not has_resolved(signature):
        return None
    from agentdouble.apps.mcp.dependencies import dependencies_of

    return dependencies_of(function, signature, context)


def _check_kind(function: Callable[..., Any]) -> None:
    if not callable(function):
        raise _error(function, "it is not a function")
    if inspect.isclass(function):
        raise _error(function, "it is a class")
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise _error(function, "it yields, and a tool returns one value")


def _checked_name(function: Callable[..., Any], name: str | None) -> str:
    called = getattr(function, "__name__", "") if name is None else name
    if not _NAME.fullmatch(called):
        raise _error(
            function,
            f"{called!r} is no name of a tool (1 to 128 letters of A to Z, digits, '.', '_', '-'); "
            "give it one with @app.tool(name=...)",
        )
    return called


def _check_parameter(function: Callable[..., Any], parameter: inspect.Parameter) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise _error(function, f"its parameter {str(parameter)!r} has no place in a schema")
    if parameter.annotation is parameter.empty:
        raise _error(function, f"its parameter {parameter.name!r} has no annotation")


def _error(function: object, why: str) -> DecorationError:
    return DecorationError(
        f"@app.tool takes a function whose parameters are all annotated; {location(function)} "
        f"is not that: {why}.",
        decorator="tool",
    )


def _agent_error(function: object, why: str) -> DecorationError:
    return DecorationError(
        f"@app.agent_as_a_tool takes 'async def f(prompt: str) -> str'; {location(function)} is not "
        f"that: {why}.",
        decorator="agent_as_a_tool",
    )
