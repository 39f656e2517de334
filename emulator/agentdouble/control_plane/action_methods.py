"""Methods as actions: their body as a model, and their description."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from typing_extensions import TypedDict

from agentdouble.control_plane import authentication, wire
from agentdouble.openapi import Answer, Operation
from agentdouble.openapi.operation import described

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M", bound=wire.Wire)

Action = Callable[[Mapping[str, Any]], Coroutine[Any, Any, dict[str, Any]]]

_NAME = "__action__"

Answered = Coroutine[Any, Any, dict[str, Any]]


class ActionMethods:
    """A class whose methods are actions."""

    def by_name(self) -> Mapping[str, Action]:
        """Return the actions by their names on the platform."""
        methods = (getattr(self, name) for name in dir(type(self)) if not name.startswith("_"))
        return {getattr(method, _NAME): method for method in methods if hasattr(method, _NAME)}


def action(
    name: str, model: type[M], result: Any = None, **types: Any
) -> Callable[[Callable[[Any, M], Answered]], Callable[[Any, Mapping[str, Any]], Answered]]:
    """Turn a method that takes its body as a model into an action.

    Its Result has the type ``result``, or fields of these ``types``.
    """

    def make(method: Callable[[Any, M], Answered]) -> Callable[[Any, Mapping[str, Any]], Answered]:
        @functools.wraps(method)
        async def run(self: Any, body: Mapping[str, Any]) -> dict[str, Any]:
            return await method(self, wire.read(model, body))

        setattr(run, _NAME, name)
        operation = describe(model, result or fields(f"{name}Result", **types))
        return described(operation)(run)

    return make


def action_of(types: Callable[[Any], tuple[Any, Any]]) -> Callable[[F], F]:
    """Describe an action on a kind of resource, by a function of its ResourceActions.

    The function returns the model of the body and the type of the Result.
    """

    def described_action(endpoint: F) -> F:
        text = inspect.getdoc(endpoint) or ""

        def say(actions: Any) -> Operation:
            summary = text.replace("resource", actions.noun).replace("a MCP", "an MCP")
            return describe(*types(actions), summary)

        return described(say)(endpoint)

    return described_action


def fields(name: str, **types: Any) -> Any:
    """Return the type of a dict with these fields, all of them required."""
    # not a model, because building dozens of pydantic models would delay the first action
    make: Any = TypedDict
    return make(name, types)


def describe(body: Any, result: Any, summary: str | None = None) -> Operation:
    """Return the description of an action."""
    return Operation((Answer(authentication.Success[result]),), body=body, summary=summary)
