"""Definitions from a document or a file: read, checked, and turned into operations."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from agentdouble import strict_json
from agentdouble.errors import DefinitionError
from agentdouble.mcp_services.openapi import operations
from agentdouble.mcp_services.openapi.definition import Definition, Document, Json
from agentdouble.processes.fork_server.processes import lower_limit

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
        return _object(plain(source))
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
        return _object(parsed(content))
    try:
        return _object(strict_json.loads(content))
    except ValueError as error:
        try:  # YAML may begin with a brace, too
            return _object(parsed(content))
        except DefinitionError:
            raise DefinitionError(f"it is not JSON: {error}") from None


def _object(document: Any) -> Json:
    if not isinstance(document, dict):
        raise DefinitionError("it is not an object, as a definition is")
    return document


CPU_S = 60
MEMORY = 4 * 1024**3  # bytes
LARGEST_TOOL = 2 * 1024**2  # characters of a schema as JSON
LARGEST_LIST = 64 * 1024**2  # of all schemas; Kubernetes has 13 MB


async def vet(text: str) -> str:
    """Return a document in JSON or YAML as JSON; raise DefinitionError if it is refused."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "ignore", "-c", f"from {__name__} import main; main()"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        answer, _ = await process.communicate(text.encode("utf-8", "replace"))
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    head, _, document = answer.partition(b"\n")
    if process.returncode or not head:
        raise DefinitionError(
            f"to read it takes more than {CPU_S} s or {MEMORY // 1024**3} GiB of memory"
        )
    found = json.loads(head)
    if "reason" in found:
        raise DefinitionError(found["reason"], place=found["place"])
    return document.decode()


def main() -> None:
    """Read a document from standard input; print what is said of it, and it as JSON."""
    _limit()
    content = sys.stdin.buffer.read()
    try:
        answer, document = _answer(content)
    except DefinitionError as error:
        answer, document = {"reason": error.reason, "place": error.place}, ""
    except RecursionError:
        answer, document = {"reason": "it is nested too deeply", "place": ""}, ""
    sys.stdout.write(f"{json.dumps(answer)}\n{document}")


def _limit() -> None:
    for kind, wanted in ((resource.RLIMIT_CPU, CPU_S), (resource.RLIMIT_AS, MEMORY)):
        with contextlib.suppress(ValueError, OSError):  # macOS has no limit of memory
            lower_limit(kind, wanted)
    os.nice(10)


def _answer(content: bytes) -> tuple[dict[str, Any], str]:
    definition = read_text(content)
    total = 0
    for operation in definition.operations:
        size = len(json.dumps(operation.input_schema))
        total += size
        if max(size / LARGEST_TOOL, total / LARGEST_LIST) > 1:
            raise DefinitionError(
                f"the schema of its tool {operation.name!r} has {size} characters, and those up to "
                f"it {total}; at most {LARGEST_TOOL} and {LARGEST_LIST} can be listed"
            )
    return {}, json.dumps(definition.document)
