"""Definitions from a document, a file or a URL: read, checked, and turned into operations."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentdouble.errors import DefinitionError
from agentdouble.imports import import_now
from agentdouble.mcp_services.openapi.definition import Definition, Json

_NEEDED = tuple(
    f"agentdouble.mcp_services.openapi.{name}"
    for name in ("sources", "operations", "documents", "validating")
)
_SUPPORTED = "Swagger 2.0, OpenAPI 3.0 and OpenAPI 3.1"
_MOST_WARNINGS = 5  # that are told


def load(source: Mapping[str, Any] | str | Path, *, validate: bool = True) -> Definition:
    """Read a definition of an HTTP API.

    ``source`` is the document itself, the path of a file, or an http(s) URL; a file or an answer
    is JSON or YAML, at most 32 MiB. Raises DefinitionError with the place of the error. What breaks
    the format's specification and changes no request is told as a UserWarning; ``validate=False``
    does not look for it, which takes most of the time. A document can be made to take any time and
    memory: on an event loop, read those of other people with ``vet`` first.
    """
    import_now(*_NEEDED)
    from agentdouble.mcp_services.openapi import sources

    name = sources.name_of(source)
    try:
        root, origin = sources.read(source)
        definition = dataclasses.replace(read(root, validate=validate), origin=origin)
    except DefinitionError as error:
        raise DefinitionError(error.reason, place=error.place, source=name) from None
    except RecursionError:
        raise DefinitionError("it is nested too deeply", source=name) from None
    if validate and definition.warnings:
        warnings.warn(summary(name, definition.warnings), stacklevel=2)
    return definition


def read_text(content: bytes) -> Definition:
    """Return the definition of a text in JSON or YAML; raise DefinitionError."""
    import_now(*_NEEDED)
    from agentdouble.mcp_services.openapi import sources

    return read(sources.parsed(content), validate=True)


def read_vetted(document: str) -> Definition:
    """Return the definition of a document that has been vetted."""
    import_now(*_NEEDED)
    from agentdouble.mcp_services.openapi import sources

    return read(sources.decoded(document), validate=False)


def read(root: Json, *, validate: bool) -> Definition:
    """Return the definition of a document with JSON's types only; raise DefinitionError."""
    import_now(*_NEEDED)
    from agentdouble.mcp_services.openapi import operations
    from agentdouble.mcp_services.openapi.documents import Document
    from agentdouble.mcp_services.openapi.validating import violations

    document = Document(root, _version(root))
    document.check_references()
    definition = operations.definition(document)
    if not validate:
        return definition
    slips = dict.fromkeys((*definition.warnings, *violations(document)))
    return dataclasses.replace(definition, warnings=tuple(slips))


def summary(name: str, slips: Sequence[str]) -> str:
    """Return one text for the warnings of a definition."""
    more = len(slips) - _MOST_WARNINGS
    shown = "; ".join(slips[:_MOST_WARNINGS]) + (f"; and {more} more" if more > 0 else "")
    return (
        f"{name[:1].upper()}{name[1:]} breaks its specification, and is used all the same: {shown}"
    )


def _version(root: Json) -> str:
    """Return the version ``"2.0"``, ``"3.0"`` or ``"3.1"``."""
    written = root.get("swagger") if "swagger" in root else root.get("openapi")
    if written is None:
        raise DefinitionError(
            "it says neither 'swagger' nor 'openapi' with a version, so it is not known what it "
            f"is; supported are {_SUPPORTED}"
        )
    version = ".".join(str(written).split(".")[:2])
    if version not in (("2.0",) if "swagger" in root else ("3.0", "3.1")):
        key = "swagger" if "swagger" in root else "openapi"
        raise DefinitionError(
            f"{key} {str(written)!r} is not supported; supported are {_SUPPORTED}", place=f"#/{key}"
        )
    return version
