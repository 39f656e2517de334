"""Definitions from a document, a file or a URL: read, checked, and turned into operations."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
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


def load(source: Mapping[str, Any] | str | Path, *, validate: bool = True) -> Definition:
    """Read a definition of an HTTP API.

    ``source`` is the document itself, the path of a file, or an http(s) URL; a file or an answer
    is JSON or YAML, at most 32 MiB. Raises DefinitionError with the place of the error.
    ``validate=False`` skips the validation against the format's specification, for documents that
    are known, or that break it in harmless ways. The validation takes most of the time, some 5 ms
    per operation: on an event loop, call this in a thread.
    """
    import_now(*_NEEDED)
    from agentdouble.mcp_services.openapi import sources

    name = sources.name_of(source)
    try:
        root, origin = sources.read(source)
        return dataclasses.replace(_read(root, validate=validate), origin=origin)
    except DefinitionError as error:
        raise DefinitionError(error.reason, place=error.place, source=name) from None
    except RecursionError:
        raise DefinitionError("it is nested too deeply", source=name) from None


def _read(root: Json, *, validate: bool) -> Definition:
    from agentdouble.mcp_services.openapi import operations
    from agentdouble.mcp_services.openapi.documents import Document
    from agentdouble.mcp_services.openapi.validating import check

    document = Document(root, _version(root))
    document.check_references()
    if validate:
        check(document)
    return operations.definition(document)


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
