"""What an endpoint says of itself beside its docstring: the types of its bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

JSON = "application/json"
EVENTS = "text/event-stream"
TEXT = "text/plain"

_ATTRIBUTE = "__openapi__"


@dataclass(frozen=True)
class Answer:
    """A successful answer: its type, None if it has no body, its status and its media type."""

    type: Any
    status: int | Literal["default"] = 200
    media_type: str = JSON


@dataclass(frozen=True)
class Operation:
    """The types of an endpoint, from which pydantic makes JSON Schema; ``Any`` is any JSON.

    ``body`` may be left out if it is ``optional``. ``query`` is a TypedDict or a model with a field
    for each parameter.
    """

    answers: Sequence[Answer] = (Answer(Any),)
    body: Any = None
    optional: bool = False
    body_type: str = JSON
    query: Any = None
    summary: str | None = None
    hidden: bool = False


@dataclass(frozen=True)
class Format:
    """What the operations of a surface have in common.

    ``error`` is the type of its errors. ``security`` are names of security schemes, one of which a
    request needs. ``query`` are parameters of every operation.
    """

    tag: str
    error: Any = dict[str, Any]
    security: Sequence[str] = ()
    query: Any = None


# An operation, one for each method, or a function of the instance to which the endpoint belongs.
Described: TypeAlias = (
    Operation | Callable[[Any], Operation] | Mapping[str, Operation | Callable[[Any], Operation]]
)


def operation(answer: Any = Any, **fields: Any) -> Callable[[F], F]:
    """Describe an endpoint; ``answer`` is the type of its JSON, or one Answer, or a tuple of them.

    The other arguments are fields of Operation.
    """
    if isinstance(answer, Answer):
        answers: Sequence[Answer] = (answer,)
    else:
        answers = answer if isinstance(answer, tuple) else (Answer(answer),)
    return described(Operation(answers=answers, **fields))


def described(description: Described) -> Callable[[F], F]:
    """Describe an endpoint."""

    def describe(endpoint: F) -> F:
        setattr(endpoint, _ATTRIBUTE, description)
        return endpoint

    return describe


def hidden(endpoint: F) -> F:
    """Leave an endpoint out of the document: it only refuses, whatever the request."""
    return described(Operation(hidden=True))(endpoint)


def operation_of(endpoint: Any, method: str) -> Operation:
    """Return the description of an endpoint; without one it takes and answers any JSON."""
    description = getattr(endpoint, _ATTRIBUTE, None)
    if isinstance(description, Mapping):
        description = description[method]
    if callable(description):
        description = description(endpoint.__self__)
    return description if isinstance(description, Operation) else Operation()


def methods_of(endpoint: Any) -> Sequence[str]:
    """Return the methods that an ASGI application describes, none if it describes nothing."""
    description = getattr(endpoint, _ATTRIBUTE, None)
    return tuple(description) if isinstance(description, Mapping) else ()


def like(original: Any, default: Operation) -> Callable[[F], F]:
    """Describe an endpoint that wraps a function: by the function, or by ``default``."""

    def describe(endpoint: F) -> F:
        endpoint.__doc__ = original.__doc__
        return described(getattr(original, _ATTRIBUTE, default))(endpoint)

    return describe
