"""Checks functions decorated as tools, agents, resources, prompts and completions (DEC-04)."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentdouble.apps.contract import location
from agentdouble.errors import DecorationError

Kind = Literal["tool", "resource", "prompt", "completion"]
_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)
_WITH_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.")


@dataclass(frozen=True)
class Offered:
    """A function that an application offers; ``options`` are the SDK's options for it.

    ``name`` is the name of a tool or prompt, or the address of a resource.
    """

    kind: Kind
    name: str
    function: Callable[..., Any]
    signature: inspect.Signature
    options: Mapping[str, Any]


# Annotations that are strings may name classes that are local to the function which decorates; only
# its frame has them.
def names_at(depth: int) -> dict[str, Any]:
    """Return the local names of the function that is ``depth`` calls above the caller."""
    return dict(sys._getframe(depth + 1).f_locals)


def tool(
    function: Callable[..., Any],
    names: Mapping[str, Any],
    name: str | None,
    description: str | None,
) -> Offered:
    """Return a function as a tool; raise DecorationError if it cannot be one.

    ``names`` are the local names at the decorator, which are used to evaluate annotations that are
    strings.
    """
    _check_kind(function, "tool")
    called = getattr(function, "__name__", "") if name is None else name
    if not _NAME.fullmatch(called):
        reason = (
            f"{called!r} is not a valid tool name (1 to 128 letters of A to Z, digits, '.', '_', '-'); "
            "give it one with @app.tool(name=...)"
        )
        raise error("tool", function, reason)
    signature = signature_of(function, names, "tool")
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise error("tool", function, f"its parameter {str(parameter)!r} cannot be in a schema")
        if parameter.annotation is parameter.empty:
            raise error("tool", function, f"its parameter {parameter.name!r} has no annotation")
    return Offered("tool", called, function, signature, _options(function, called, description))


def agent(function: Callable[..., Any], names: Mapping[str, Any]) -> Offered:
    """Return an ``async (prompt: str) -> str`` as a tool; raise DecorationError for others."""
    if not inspect.iscoroutinefunction(function):
        raise error("agent_as_a_tool", function, "it is not an async function")
    signature = signature_of(function, names, "agent_as_a_tool")
    reason = None
    if list(signature.parameters) != ["prompt"]:
        reason = f"it takes {', '.join(signature.parameters) or 'nothing'}"
    elif signature.parameters["prompt"].kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        reason = "its prompt must be an ordinary parameter"
    elif signature.parameters["prompt"].annotation is not str:
        reason = "its prompt is not annotated as str"
    elif signature.return_annotation is not str:
        reason = "its return type is not annotated as str"
    if reason is not None:
        raise error("agent_as_a_tool", function, reason)
    return tool(function, names, None, None)


def check_address(uri: object) -> None:
    """Raise DecorationError for an invalid resource address."""
    if not isinstance(uri, str) or not _WITH_SCHEME.match(uri):
        raise DecorationError(
            f"@app.resource takes an address with a scheme, such as 'notes://{{name}}', and was "
            f"given {uri!r}.",
            decorator="resource",
        )


def offered(
    kind: Kind,
    name: str | None,
    function: Callable[..., Any],
    names: Mapping[str, Any],
    **texts: str | None,
) -> Offered:
    """Return a function as a resource, a prompt or the completion; raise DecorationError."""
    _check_kind(function, kind)
    signature = signature_of(function, names, kind)
    if kind == "completion" and len(signature.parameters) != 3:
        raise error(kind, function, "it does not accept ref, argument and context")
    called = getattr(function, "__name__", "")
    options = _options(function, texts.pop("shown_name", None) or called, texts.pop("description"))
    options |= {option: value for option, value in texts.items() if value is not None}
    return Offered(kind, name or options["name"], function, signature, options)


def signature_of(
    function: Callable[..., Any], names: Mapping[str, Any], decorator: str
) -> inspect.Signature:
    """Return a function's signature with its annotations as types; raise DecorationError."""
    try:
        return inspect.signature(function, locals={**names}, eval_str=True)
    except Exception as problem:  # an annotation may raise anything
        raise error(decorator, function, f"an annotation cannot be read: {problem}") from problem


def error(decorator: str, function: object, reason: str) -> DecorationError:
    """Return the error for a function that cannot be decorated."""
    expected = {
        "tool": "a function whose parameters are all annotated",
        "agent_as_a_tool": "'async def f(prompt: str) -> str'",
        "completion": "'def f(ref, argument, context)'",
    }.get(decorator, "a function that returns its result")
    return DecorationError(
        f"@app.{decorator} takes {expected}; {location(function)} is not that: {reason}.",
        decorator=decorator,
    )


def _check_kind(function: Callable[..., Any], decorator: str) -> None:
    if not callable(function):
        raise error(decorator, function, "it is not a function")
    if inspect.isclass(function):
        raise error(decorator, function, "it is a class")
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise error(decorator, function, f"it is a generator, but a {decorator} returns one value")


def _options(function: Callable[..., Any], name: str, description: str | None) -> dict[str, Any]:
    text = inspect.cleandoc(function.__doc__ or "") if description is None else description
    return {"name": name, "description": text}
