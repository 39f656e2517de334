"""What actions say of themselves for the OpenAPI document."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from typing_extensions import TypedDict

from agentdouble.control_plane.authentication import Success
from agentdouble.openapi import Answer, Operation
from agentdouble.openapi.operation import described

F = TypeVar("F", bound=Callable[..., Any])


def action(body: Any, result: Any, *, summary: str | None = None) -> Callable[[F], F]:
    """Describe an action: the model of its body, and the type of its Result."""
    return described(_operation(body, result, summary))


def action_of(describe: Callable[[Any], tuple[Any, Any]]) -> Callable[[F], F]:
    """Describe an action on a kind of resource, by a function of its ResourceActions.

    The function returns the model of the body and the type of the Result.
    """

    def described_action(endpoint: F) -> F:
        text = inspect.getdoc(endpoint) or ""

        def say(actions: Any) -> Operation:
            summary = text.replace("resource", actions.noun).replace("a MCP", "an MCP")
            return _operation(*describe(actions), summary)

        return described(say)(endpoint)

    return described_action


def fields(name: str, **types: Any) -> Any:
    """Return the type of a dict with these fields, all of them required."""
    # not a model: the first action would wait until pydantic has made dozens that nobody may ask for
    make: Any = TypedDict
    return make(name, types)


def _operation(body: Any, result: Any, summary: str | None) -> Operation:
    return Operation((Answer(Success[result]),), body=body, summary=summary)
