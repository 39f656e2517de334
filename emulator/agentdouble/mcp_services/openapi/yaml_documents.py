"""YAML with JSON's types only, and without aliases that grow endlessly."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from agentdouble.errors import DefinitionError

_LARGEST = 4_000_000  # values, with each alias counted in full
_DEEPEST = 200
_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, if it is built

# YAML 1.2's core schema: 'no' is a word, 12:30 too, and a date is a string.
_SCALARS = (
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^(?:0o[0-7]+|0x[0-9a-fA-F]+|[-+]?[0-9]+)$", list("-+0123456789")),
    (
        "float",
        r"^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$",
        list("-+.0123456789"),
    ),
    ("merge", r"^<<$", ["<"]),
)


class _Loader(_BASE):  # type: ignore[misc]
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's own shape)


def _integer(loader: Any, node: Any) -> int:
    text = loader.construct_scalar(node)
    return int(text, 0) if text[:2] in ("0x", "0o") else int(text)


for _tag, _pattern, _first in _SCALARS:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)
_Loader.add_constructor("tag:yaml.org,2002:int", _integer)


def parsed(content: bytes) -> Any:
    """Return the document of a YAML text; raise DefinitionError if it is invalid."""
    try:
        document = yaml.load(content, _Loader)  # noqa: S506 (a safe loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or type(error).__name__
        raise DefinitionError(f"it is neither JSON nor YAML: {problem}{where}") from None
    except (ValueError, RecursionError) as error:
        raise DefinitionError(f"it is neither JSON nor YAML: {error}") from None
    return plain(document)


def plain(document: Any) -> Any:
    """Return a copy with JSON's types only: string keys, no shared parts, no cycles."""
    _size(document, {}, 0)
    try:
        return json.loads(json.dumps(document, default=_as_json, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise DefinitionError(f"it has values that JSON has not: {error}") from None


def _as_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__}")


def _size(node: Any, known: dict[int, int], depth: int) -> int:
    """Return how many values a node stands for; raise DefinitionError if there are too many."""
    if not isinstance(node, (Mapping, list, tuple)):
        return 1
    size = known.get(id(node))
    if size == 0 or depth > _DEEPEST:
        raise DefinitionError("it contains itself" if size == 0 else "it is nested too deeply")
    if size is None:
        known[id(node)] = 0
        below = node.values() if isinstance(node, Mapping) else node
        size = 1 + sum(_size(child, known, depth + 1) for child in below)
        if size > _LARGEST:
            raise DefinitionError("its aliases stand for too much")
        known[id(node)] = size
    return size
