"""The decorator contract (section 4.6): which functions can be decorated.

Functions are checked when they are decorated: entrypoints and pings of a SimpleApp (DEC-01,
DEC-02), and tools, agents, resources, prompts and completions of an MCPApp (DEC-04).
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agentdouble.errors import DecorationError

_APPS = str(Path(__file__).parent)

Kind = Literal["tool", "resource", "prompt", "completion"]
_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)
_WITH_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.")


def check_entrypoint(function: Callable[..., Any]) -> None:
    """Raise DecorationError unless the function is async and takes payload, then headers."""
    if not callable(function):
        raise refusal("entrypoint", function, "it is not a function")
    if not _is_async(function):
        raise refusal("entrypoint", function, "it is not async")
    signature = inspect.signature(function)
    try:
        bound = signature.bind(object(), object())
    except TypeError as error:
        raise refusal("entrypoint", function, f"it does not accept these two: {error}") from None
    positional = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if len(bound.args) != 2 or len(positional) < 2:
        raise refusal("entrypoint", function, "it does not name both parameters")
    if positional[0] == "headers" or positional[1] == "payload":
        raise refusal("entrypoint", function, "it takes them in the other order")


def check_ping(function: Callable[..., Any]) -> None:
    """Raise DecorationError unless the function is sync and takes no parameters."""
    if not callable(function):
        raise refusal("ping", function, "it is not a function")
    if inspect.isclass(function):
        raise refusal("ping", function, "it is a class")
    if _is_async(function) or _is_async(type(function).__call__):
        raise refusal("ping", function, "it is async")
    if inspect.isgeneratorfunction(function):
        raise refusal("ping", function, "it is a generator and does not return a string")
    if inspect.signature(function).parameters:
        raise refusal("ping", function, "it takes parameters")


def location(function: object) -> str:
    """Return a function's name and the place of its definition."""
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", repr(function))
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code is not None else name


def from_application(error: Exception) -> Exception:
    """Return the error with a traceback that begins in the application, not in this package."""
    begins = traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename.startswith(_APPS):
            begins = traceback.tb_next
        traceback = traceback.tb_next
    return error.with_traceback(begins)


def text_of(error: BaseException) -> str:
    """Return the text of an exception, with its type if the text is empty or only a key."""
    text = str(error)
    if text and not isinstance(error, KeyError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _is_async(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


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
        raise refusal("tool", function, reason)
    signature = signature_of(function, names, "tool")
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise refusal(
                "tool", function, f"its parameter {str(parameter)!r} cannot be in a schema"
            )
        if parameter.annotation is parameter.empty:
            raise refusal("tool", function, f"its parameter {parameter.name!r} has no annotation")
    return Offered("tool", called, function, signature, _options(function, called, description))


def agent(function: Callable[..., Any], names: Mapping[str, Any]) -> Offered:
    """Return an ``async (prompt: str) -> str`` as a tool; raise DecorationError for others."""
    if not inspect.iscoroutinefunction(function):
        raise refusal("agent_as_a_tool", function, "it is not an async function")
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
        raise refusal("agent_as_a_tool", function, reason)
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
        raise refusal(kind, function, "it does not accept ref, argument and context")
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
        raise refusal(decorator, function, f"an annotation cannot be read: {problem}") from problem


def refusal(decorator: str, function: object, reason: str) -> DecorationError:
    """Return the error for a function that cannot be decorated."""
    expected = {
        "entrypoint": "'async def f(payload, headers)'",
        "ping": "'def f()', sync and without parameters",
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
        raise refusal(decorator, function, "it is not a function")
    if inspect.isclass(function):
        raise refusal(decorator, function, "it is a class")
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise refusal(
            decorator, function, f"it is a generator, but a {decorator} returns one value"
        )


def _options(function: Callable[..., Any], name: str, description: str | None) -> dict[str, Any]:
    text = inspect.cleandoc(function.__doc__ or "") if description is None else description
    return {"name": name, "description": text}
