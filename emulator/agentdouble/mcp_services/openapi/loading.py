"""Definitions from a document or a file: read, checked, and turned into operations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentdouble import strict_json
from agentdouble.errors import DefinitionError
from agentdouble.mcp_services.openapi import operations, yaml_documents
from agentdouble.mcp_services.openapi.definition import Definition, Json
from agentdouble.mcp_services.openapi.documents import Document

LARGEST = 32 * 1024 * 1024  # bytes
_SUPPORTED = "Swagger 2.0, OpenAPI 3.0 and OpenAPI 3.1"


def load(source: Mapping[str, Any] | str | Path) -> Definition:
    """Read a definition of an HTTP API.

    ``source`` is the document itself, or the path of a file of JSON or YAML, at most 32 MiB. Raises
    DefinitionError with the place of the error. A document can be made to take any time and memory:
    on an event loop, read those of other people with ``vet`` first.
    """
    name = "the definition" if isinstance(source, Mapping) else f"the definition {source}"
    try:
        return read(_document(source))
    except DefinitionError as error:
        raise DefinitionError(error.reason, place=error.place, source=name) from None
    except RecursionError:
        raise DefinitionError("it is nested too deeply", source=name) from None


def read_text(content: bytes) -> Definition:
    """Return the definition of a text in JSON or YAML; raise DefinitionError."""
    return read(_parsed(content))


def read_vetted(document: str) -> Definition:
    """Return the definition of a document that has been vetted."""
    return read(strict_json.loads(document, patient=True))


def read(root: Json) -> Definition:
    """Return the definition of a document with JSON's types only; raise DefinitionError."""
    return operations.definition(Document(root, _version(root)))


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


def _document(source: Mapping[str, Any] | str | Path) -> Json:
    if isinstance(source, Mapping):
        return _object(yaml_documents.plain(source))
    if not isinstance(source, (str, Path)):
        raise DefinitionError(
            f"a {type(source).__name__} is neither a document nor the path of a file"
        )
    return _parsed(_file(Path(source)))


def _file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise DefinitionError(f"it cannot be read: {error.strerror}") from None
    except ValueError:  # a null byte in the path
        raise DefinitionError("it cannot be read: that is no path") from None
    if len(content) > LARGEST:
        raise DefinitionError(f"it is larger than {LARGEST // 1024 // 1024} MiB")
    return content


def _parsed(content: bytes) -> Json:
    """Return the document of a text in JSON or YAML; raise DefinitionError if it is none."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    if content.lstrip()[:1] != b"{":
        return _object(yaml_documents.parsed(content))
    try:
        return _object(strict_json.loads(content))
    except ValueError as error:
        try:  # YAML may begin with a brace, too
            return _object(yaml_documents.parsed(content))
        except DefinitionError:
            raise DefinitionError(f"it is not JSON: {error}") from None


def _object(document: Any) -> Json:
    if not isinstance(document, dict):
        raise DefinitionError("it is not an object, as a definition is")
    return document
