"""The keywords of the formats' objects, for warnings about those that an object does not have.

A misspelt keyword has no effect, like one that begins with ``x-``; only its author can notice.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Literal

from agentdouble.core.suggestions import did_you_mean
from agentdouble.mcp_services.openapi.definition import Document, Json, step

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")

Kind = Literal["document", "path item", "operation", "parameter"]

_FORMATS = {"2.0": "Swagger 2.0", "3.0": "OpenAPI 3.0", "3.1": "OpenAPI 3.1"}
_LISTS = ("consumes", "produces", "schemes", "security", "servers")
_EVERY_OPERATION = (
    *("deprecated", "description", "externalDocs", "operationId", "parameters", "responses"),
    *("security", "summary", "tags"),
)
_SWAGGER: dict[Kind, tuple[str, ...]] = {
    "document": (
        *("basePath", "consumes", "definitions", "externalDocs", "host", "info", "parameters"),
        *("paths", "produces", "responses", "schemes", "security", "securityDefinitions"),
        *("swagger", "tags"),
    ),
    "path item": ("$ref", "parameters", *METHODS),
    "operation": (*_EVERY_OPERATION, "consumes", "produces", "schemes"),
    "parameter": (
        *("allowEmptyValue", "collectionFormat", "default", "description", "enum", "example"),
        *("exclusiveMaximum", "exclusiveMinimum", "format", "in", "items", "maxItems"),
        *("maxLength", "maximum", "minItems", "minLength", "minimum", "multipleOf", "name"),
        *("pattern", "required", "schema", "title", "type", "uniqueItems"),
    ),
}
_OPENAPI: dict[Kind, tuple[str, ...]] = {
    "document": (
        *("components", "externalDocs", "info", "openapi", "paths", "security", "servers", "tags"),
    ),
    "path item": ("$ref", "description", "parameters", "servers", "summary", *METHODS),
    "operation": (*_EVERY_OPERATION, "callbacks", "requestBody", "servers"),
    "parameter": (
        *("allowEmptyValue", "allowReserved", "content", "deprecated", "description", "example"),
        *("examples", "explode", "in", "name", "required", "schema", "style"),
    ),
}
_OPENAPI_31 = {**_OPENAPI, "document": (*_OPENAPI["document"], "jsonSchemaDialect", "webhooks")}
KEYWORDS = {"2.0": _SWAGGER, "3.0": _OPENAPI, "3.1": _OPENAPI_31}


def check(document: Document, kind: Kind, node: Json, location: str) -> None:
    """Warn of keywords that an object does not have, or whose value is no list."""
    known = KEYWORDS[document.version][kind]
    for key, value in node.items():
        if key in known:
            if key in _LISTS and not isinstance(value, list):
                at = step(location, key)
                document.note(at, f"{key!r} is not a list, so it has no effect (at {at}).")
        elif not key.startswith("x-"):
            at = step(location, key)
            document.note(
                at,
                f"{key[:80]!r} is not a keyword of {_with_article(kind)} in "
                f"{_FORMATS[document.version]}, so it has no effect (at {at[:200]})."
                f"{did_you_mean(key, known)}",
            )


def check_type(document: Document, node: Json, allowed: Sequence[str], location: str) -> None:
    """Warn of a parameter's type that Swagger 2.0 does not have."""
    written, at = node.get("type"), step(location, "type")
    if written is not None and written not in allowed:
        document.note(
            at,
            f"the type {reprlib.repr(written)} is not one of {', '.join(allowed)}, so the value "
            f"is sent as text (at {at}).{did_you_mean(written, allowed)}",
        )


def _with_article(kind: Kind) -> str:
    return f"an {kind}" if kind == "operation" else f"a {kind}"
