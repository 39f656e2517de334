"""What a document breaks of its format's specification.

Published definitions are full of slips, most of which change no request. So they are told as
warnings, and the code that reads a definition refuses what it can make no request of. The schemas
of the format are matched, and no schema of the document: foreign patterns are never evaluated.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from itertools import islice
from typing import Any

from jsonschema.exceptions import ValidationError, relevance
from openapi_spec_validator import (
    OpenAPIV2SpecValidator,
    OpenAPIV30SpecValidator,
    OpenAPIV31SpecValidator,
)

from agentdouble.mcp_services.openapi.documents import Document, step

MOST = 20  # violations that are looked for
_LONGEST = 300  # characters of a message, which may quote half of the document
_KINDS: dict[str, Any] = {
    "2.0": OpenAPIV2SpecValidator,
    "3.0": OpenAPIV30SpecValidator,
    "3.1": OpenAPIV31SpecValidator,
}


def violations(document: Document) -> Iterator[str]:
    """Yield the first violations of the specification, each with its place."""
    validator = _KINDS[document.version](document.root).schema_validator
    for error in islice(validator.iter_errors(document.root), MOST):
        nearest = _nearest(error)
        yield f"{step('#', *nearest.absolute_path)}: {_short(nearest)}"


def _nearest(error: ValidationError) -> ValidationError:
    """Return the inner error; skip the branch in which the value would be a reference."""
    while error.context:
        others = [one for one in error.context if "'$ref'" not in one.message]
        branches = {one.relative_schema_path[0] for one in others}
        if len(branches) != 1:
            return error
        error = max(others, key=relevance)
    return error


def _short(error: ValidationError) -> str:
    message: str = error.message
    if len(message) <= _LONGEST:
        return message
    return f"{reprlib.repr(error.instance)} breaks the rule {error.validator!r}"
