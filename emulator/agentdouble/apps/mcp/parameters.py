"""The parameters of a function that callers do not give: the context, and what is resolved."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, get_args

from agentdouble.apps.contract import location
from agentdouble.errors import DecorationError

# A function that is annotated with a class of the SDK has imported the SDK; so this does not.
_CONTEXT = "mcp.server.mcpserver.context"
_RESOLVE = "mcp.server.mcpserver.resolve"


def context_parameter(
    function: Callable[..., Any], signature: inspect.Signature, decorator: str
) -> str | None:
    """Return the name of the parameter that takes the context, or None; raise DecorationError."""
    module = sys.modules.get(_CONTEXT)
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


def has_resolved(signature: inspect.Signature) -> bool:
    """Return whether a parameter is annotated with the SDK's ``Resolve``."""
    module = sys.modules.get(_RESOLVE)
    if module is None:
        return False
    annotations = [one.annotation for one in signature.parameters.values()]
    return any(_mentions(one, module.Resolve) for one in annotations)


def without(signature: inspect.Signature, *names: str | None) -> inspect.Signature:
    """Return a signature without some parameters."""
    kept = [one for name, one in signature.parameters.items() if name not in names]
    return signature.replace(parameters=kept)


def described_by(signature: inspect.Signature, call: Any = None) -> Callable[..., Any]:
    """Return a function that the SDK and pydantic find to have a signature.

    They take the parameters from one attribute and the types, already evaluated, from another.
    """
    described: Any = call or (lambda: None)
    parameters = signature.parameters.values()
    described.__signature__ = signature
    described.__annotations__ = {
        one.name: one.annotation for one in parameters if one.annotation is not one.empty
    }
    if signature.return_annotation is not signature.empty:
        described.__annotations__["return"] = signature.return_annotation
    function: Callable[..., Any] = described
    return function


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a call of a function, or of an object, returns a coroutine."""
    call = getattr(function, "__call__", None)  # noqa: B004 (an object's own)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _takes(annotation: Any, context: type) -> bool:
    alternatives = (annotation, *get_args(annotation))
    return any(inspect.isclass(one) and issubclass(one, context) for one in alternatives)


def _mentions(annotation: Any, marker: type) -> bool:
    """Return whether an annotation has a marker among its metadata, however deep."""
    inside = (*get_args(annotation), *getattr(annotation, "__metadata__", ()))
    return any(isinstance(one, marker) or _mentions(one, marker) for one in inside)
