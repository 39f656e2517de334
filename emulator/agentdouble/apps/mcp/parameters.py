"""The parameter of a function that takes the context of the request."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, get_args

from agentdouble.apps.contract import location
from agentdouble.errors import DecorationError

_SDK_CONTEXT = "mcp.server.mcpserver.context"


def context_parameter(
    function: Callable[..., Any], signature: inspect.Signature, decorator: str
) -> str | None:
    """Return the name of the parameter that takes the context, or None; raise DecorationError.

    A function that is annotated with a class of the SDK has imported the SDK; so this does not.
    """
    module = sys.modules.get(_SDK_CONTEXT)
    if module is None:
        return None
    found = [
        name for name, one in signature.parameters.items() if _takes(one.annotation, module.Context)
    ]
    if len(found) > 1:
        raise DecorationError(
            f"@app.{decorator} gives one parameter the context; {location(function)} has "
            f"{len(found)}: {', '.join(found)}.",
            decorator=decorator,
        )
    return found[0] if found else None


def without(signature: inspect.Signature, parameter: str | None) -> inspect.Signature:
    """Return a signature without a parameter."""
    if parameter is None:
        return signature
    kept = [one for name, one in signature.parameters.items() if name != parameter]
    return signature.replace(parameters=kept)


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a call of a function, or of an object, returns a coroutine."""
    call = getattr(function, "__call__", None)  # noqa: B004 (an object's own)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _takes(annotation: Any, context: type) -> bool:
    alternatives = (annotation, *get_args(annotation))
    return any(inspect.isclass(one) and issubclass(one, context) for one in alternatives)
