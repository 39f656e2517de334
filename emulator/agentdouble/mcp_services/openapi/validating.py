"""Validation of a document against the specification of its format.

Validation takes most of the reading time (8 s for the 1223 operations of GitHub, 1 s without it),
so a document that was valid once is not validated again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jsonschema.exceptions import ValidationError, relevance
from openapi_spec_validator import (
    OpenAPIV2SpecValidator,
    OpenAPIV30SpecValidator,
    OpenAPIV31SpecValidator,
)
from openapi_spec_validator.validation.exceptions import OpenAPIValidationError

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services.openapi.documents import Document, step

_LONGEST = 300  # characters of a message, which may quote half of the document
_KINDS: dict[str, Any] = {
    "2.0": OpenAPIV2SpecValidator,
    "3.0": OpenAPIV30SpecValidator,
    "3.1": OpenAPIV31SpecValidator,
}


def check(document: Document) -> None:
    """Raise DefinitionError with the place of the gravest violation of the specification."""
    validator = _validator(document)
    try:
        error = _gravest(validator.schema_validator.iter_errors(document.root)) or next(
            validator.root_validator(validator.schema_path), None
        )
    except RecursionError:
        raise
    except Exception as broken:  # an error of the validator itself
        raise DefinitionError(f"it cannot be validated: {_short(str(broken))}") from None
    if error is not None:
        raise _refusal(document, error)


def _refusal(document: Document, error: ValidationError) -> DefinitionError:
    path: Sequence[Any] | None = getattr(error, "place", None)
    if path is None:
        error = _nearest(error)
        path = error.absolute_path
    known = "load it with validate=False if that is known to do no harm"
    return DefinitionError(f"{_short(error.message)} ({known})", place=_place(document, path))


def _nearest(error: ValidationError) -> ValidationError:
    """Return the inner error; skip the branch in which the value would be a reference."""
    while error.context:
        others = [one for one in error.context if "'$ref'" not in one.message]
        branches = {one.relative_schema_path[0] for one in others}
        if len(branches) != 1:
            return error
        error = max(others, key=relevance)
    return error


def _gravest(errors: Iterator[ValidationError]) -> ValidationError | None:
    return max(errors, key=relevance, default=None)


def _place(document: Document, path: Sequence[Any]) -> str:
    """Return the place of a path, with its references resolved."""
    node: Any = document.root
    place = "#"
    for key in path:
        node, place = document.followed(node, place)
        node, place = node[key], step(place, key)
    return "" if place == "#" else place


class _Located:
    """Adds the place to an error of a part, because the part itself does not know it.

    The classes below keep visited ids in lists, which takes half of the time for a large document.
    So sets replace the lists.
    """

    visited_schema_ids: Any
    meta_checked_schema_ids: Any

    def __init__(self, registry: Any) -> None:
        super().__init__(registry)  # type: ignore[call-arg]
        self.visited_schema_ids = _Seen()
        self.meta_checked_schema_ids = _Seen()

    def __call__(self, *args: Any, **options: Any) -> Iterator[ValidationError]:
        part = next(one for one in args if hasattr(one, "parts"))
        for error in super().__call__(*args, **options):  # type: ignore[misc]
            if not hasattr(error, "place"):
                of_default = () if isinstance(error, OpenAPIValidationError) else ("default",)
                error.place = (*part.parts, *of_default, *error.absolute_path)
            yield error


class _Seen(set[int]):
    """A set with the ``append`` of a list."""

    def append(self, item: int) -> None:
        self.add(item)


def _validator(document: Document) -> Any:
    kind = _KINDS[document.version]
    located = {
        name: type(name, (_Located, kind.keyword_validators[name]), {})
        for name in ("operation", "schema")
    }
    keywords = {"keyword_validators": {**kind.keyword_validators, **located}}
    return type("Validator", (kind,), keywords)(document.root)


def _short(message: str) -> str:
    return message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."
