"""What an endpoint says of itself beside its docstring: the types of its bodies and its errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

JSON = "application/json"
EVENTS = "text/event-stream"
TEXT = "text/plain"
NDJSON = "application/x-ndjson"

_ATTRIBUTE = "__openapi__"


@dataclass(frozen=True)
class Answer:
    """An answer: its type, None if it has no body, with its status and its media type.

    ``codes`` are the codes of errors that it may have.
    """

    type: Any
    status: int | Literal["default"] = 200
    media_type: str = JSON
    codes: Sequence[str] = ()


# A status in the format of the surface's errors, an answer with a type of its own, or a class of
# errors, which has a ``status`` and may have a ``code``, as its subclasses.
Error: TypeAlias = int | Answer | type[Exception]


@dataclass(frozen=True)
class Operation:
    """The types of an endpoint, from which pydantic makes JSON Schema; ``Any`` is any JSON.

    ``body`` may be left out if it is ``optional``. ``query`` and ``headers`` are TypedDicts with a
    field for each parameter. ``error`` and ``refused`` replace those of the surface's Format.
    """

    answers: Sequence[Answer] = (Answer(Any),)
    body: Any = None
    optional: bool = False
    body_type: str = JSON
    query: Any = None
    headers: Any = None
    errors: Sequence[Error] = ()
    error: Any = None
    refused: Any = None
    summary: str | None = None
    hidden: bool = False


@dataclass(frozen=True)
class Format:
    """What the operations of a surface have in common.

    ``error`` is the type of the surface's own errors, ``refused`` that of the layers in front of
    it, which answer with the statuses of REFUSED. ``security`` are names of security schemes, one
    of which a request needs.
    """

    tag: str
    refused: Any
    error: Any = None
    errors: Sequence[Error] = ()
    security: Sequence[str] = ()
    headers: Any = None
    query: Any = None


def operation(answer: Any = Any, **fields: Any) -> Callable[[F], F]:
    """Describe an endpoint; ``answer`` is the type of its JSON, or one Answer, or a tuple of them.

    The other arguments are fields of Operation.
    """
    return described(Operation(answers=_answers(answer), **fields))


def described(
    said: Operation
    | Callable[[Any], Operation]
    | Mapping[str, Operation | Callable[[Any], Operation]],
) -> Callable[[F], F]:
    """Describe an endpoint by an Operation, by one for each method, or by a function.

    The function is called with the instance to which the endpoint, a method, belongs.
    """

    def describe(endpoint: F) -> F:
        setattr(endpoint, _ATTRIBUTE, said)
        return endpoint

    return describe


def hidden(endpoint: F) -> F:
    """Leave an endpoint out of the document: it only refuses, whatever the request."""
    return described(Operation(hidden=True))(endpoint)


def operation_of(endpoint: Any, method: str) -> Operation:
    """Return what an endpoint says of itself; one that says nothing takes and answers any JSON."""
    said = getattr(endpoint, _ATTRIBUTE, None)
    if isinstance(said, Mapping):
        said = said[method]
    found = said(endpoint.__self__) if callable(said) else said
    assert found is None or isinstance(found, Operation)
    return found or Operation()


def methods_of(endpoint: Any) -> Sequence[str]:
    """Return the methods that an ASGI application describes, none if it describes nothing."""
    said = getattr(endpoint, _ATTRIBUTE, None)
    return tuple(said) if isinstance(said, Mapping) else ()


def like(original: Any, said: Operation) -> Callable[[F], F]:
    """Describe an endpoint that is made around a function: with its docstring, and ``said``.

    What the function says of itself counts more.
    """

    def describe(endpoint: F) -> F:
        endpoint.__doc__ = original.__doc__
        return described(getattr(original, _ATTRIBUTE, said))(endpoint)

    return describe


def _answers(answer: Any) -> Sequence[Answer]:
    if isinstance(answer, Answer):
        return (answer,)
    if isinstance(answer, tuple) and all(isinstance(one, Answer) for one in answer):
        return answer
    return (Answer(answer),)
