"""The decorator contract (section 4.6): which functions can be decorated.

Functions are checked when they are decorated (DEC-01, DEC-02).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentdouble.errors import DecorationError

_APPS = str(Path(__file__).parent)


def check_entrypoint(function: Callable[..., Any]) -> None:
    """Raise DecorationError unless the function is async and takes payload, then headers."""
    if not callable(function):
        raise _entrypoint_error(function, "it is not a function")
    if not _is_async(function):
        raise _entrypoint_error(function, "it is not async")
    signature = inspect.signature(function)
    try:
        bound = signature.bind(object(), object())
    except TypeError as error:
        raise _entrypoint_error(function, f"it does not accept these two: {error}") from None
    positional = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if len(bound.args) != 2 or len(positional) < 2:
        raise _entrypoint_error(function, "it does not name both parameters")
    if positional[0] == "headers" or positional[1] == "payload":
        raise _entrypoint_error(function, "it takes them in the other order")


def check_ping(function: Callable[..., Any]) -> None:
    """Raise DecorationError unless the function is sync and takes no parameters."""
    if not callable(function):
        raise _ping_error(function, "it is not a function")
    if inspect.isclass(function):
        raise _ping_error(function, "it is a class")
    if _is_async(function) or _is_async(type(function).__call__):
        raise _ping_error(function, "it is async")
    if inspect.isgeneratorfunction(function):
        raise _ping_error(function, "it is a generator and does not return a string")
    if inspect.signature(function).parameters:
        raise _ping_error(function, "it takes parameters")


def _entrypoint_error(function: object, reason: str) -> DecorationError:
    return DecorationError(
        f"@app.entrypoint takes 'async def f(payload, headers)'; {location(function)} is not that: "
        f"{reason}.",
        decorator="entrypoint",
    )


def _ping_error(function: object, reason: str) -> DecorationError:
    return DecorationError(
        f"@app.ping takes 'def f()', sync and without parameters; {location(function)} is not that: "
        f"{reason}.",
        decorator="ping",
    )


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
