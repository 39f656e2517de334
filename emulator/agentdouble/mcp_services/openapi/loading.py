"""Definitions from a document or a file: read, checked, and turned into operations."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from agentdouble.core import strict_json
from agentdouble.errors import DefinitionError
from agentdouble.mcp_services.openapi import operations
from agentdouble.mcp_services.openapi.definition import ApiDefinition, Document

LARGEST = 32 * 1024 * 1024  # bytes
_LARGEST_TREE = 4_000_000  # values; a YAML alias counts as much as what it refers to
_DEEPEST = 200
_SUPPORTED = "Swagger 2.0, OpenAPI 3.0 and OpenAPI 3.1"


# YAML 1.2: 'no' is a word, 12:30 too, and a date is a string
_SCALARS = (
    ("null", r"^(?:~|null|)$", ["~", "n", ""]),
    ("bool", r"^(?:true|false)$", ["t", "f"]),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", [*"-+0123456789"]),
    ("float", r"^[-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?$", [*"-+.0123456789"]),
    ("merge", r"^<<$", ["<"]),
)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's own shape)


for _tag, _pattern, _first in _SCALARS:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)


def load(source: Mapping[str, Any] | str | Path) -> ApiDefinition:
    """Read a definition of an HTTP API.

    ``source`` is the document itself, or the path of a file of JSON or YAML, at most 32 MiB. Raises
    DefinitionError with the place of the error.
    """
    name = "the definition" if isinstance(source, Mapping) else f"the definition {source}"
    try:
        return _read(_plain(source) if isinstance(source, Mapping) else _parsed(_file(source)))
    except DefinitionError as error:
        raise DefinitionError(error.reason, location=error.place, source=name) from None
    except RecursionError:
        raise DefinitionError("it is nested too deeply", source=name) from None


def load_text(text: str) -> ApiDefinition:
    """Read a definition in JSON or YAML; raise DefinitionError."""
    try:
        return _read(_parsed(text.encode("utf-8", "replace")))
    except RecursionError:
        raise DefinitionError("it is nested too deeply") from None


def _read(root: Any) -> ApiDefinition:
    if not isinstance(root, dict):
        raise DefinitionError("it is not an object, as a definition is")
    key = "swagger" if "swagger" in root else "openapi"
    if key not in root:
        raise DefinitionError(
            "it says neither 'swagger' nor 'openapi' with a version, so it is not known what it "
            f"is; supported are {_SUPPORTED}"
        )
    version = ".".join(str(root[key]).split(".")[:2])
    if version not in (("2.0",) if key == "swagger" else ("3.0", "3.1")):
        raise DefinitionError(
            f"{key} {str(root[key])!r} is not supported; supported are {_SUPPORTED}",
            location=f"#/{key}",
        )
    return operations.definition(Document(root, version))


def _file(source: str | Path) -> bytes:
    try:
        with Path(source).open("rb") as file:
            content = file.read(LARGEST + 1)
    except (OSError, ValueError, TypeError) as error:  # a null byte in the path, or no path
        reason = getattr(error, "strerror", None) or error
        raise DefinitionError(f"it cannot be read: {reason}") from None
    if len(content) > LARGEST:
        raise DefinitionError(f"it is larger than {LARGEST // 1024 // 1024} MiB")
    return content


def _parsed(content: bytes) -> Any:
    """Return the document of a text in JSON or YAML; raise DefinitionError if it is none."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        if content.lstrip()[:1] == b"{":
            return strict_json.loads(content, patient=True)
    except RecursionError:
        raise DefinitionError("it is nested too deeply") from None
    except ValueError as error:
        raise DefinitionError(f"it is not JSON: {error}") from None
    try:
        return _plain(yaml.load(content, _Loader))  # noqa: S506 (a safe loader)
    except RecursionError:
        raise DefinitionError("it is nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or type(error).__name__
        raise DefinitionError(f"it is neither JSON nor YAML: {problem}{where}") from None


def _plain(document: Any) -> Any:
    """Return a copy with JSON's types only: string keys, no shared parts, no cycles."""
    _size(document, {}, 0)
    try:
        return strict_json.loads(json.dumps(document, default=_as_dict, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise DefinitionError(f"it has values that JSON has not: {error}") from None


def _as_dict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__}")


def _size(node: Any, sizes: dict[int, int], depth: int) -> int:
    """Return how many values a node stands for; raise DefinitionError if there are too many."""
    if not isinstance(node, (Mapping, list, tuple)):
        return 1
    size = sizes.get(id(node))
    if size == 0 or depth > _DEEPEST:
        raise DefinitionError("it contains itself" if size == 0 else "it is nested too deeply")
    if size is None:
        sizes[id(node)] = 0
        below = node.values() if isinstance(node, Mapping) else node
        size = 1 + sum(_size(child, sizes, depth + 1) for child in below)
        if size > _LARGEST_TREE:
            raise DefinitionError("its aliases stand for too much")
        sizes[id(node)] = size
    return size
