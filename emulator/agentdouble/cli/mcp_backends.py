"""The backends of services, as they are given on the command line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agentdouble.errors import AgentDoubleError

LARGEST = 24 * 1024 * 1024  # bytes of a definition: even as JSON in JSON it fits into a request
_SUFFIXES = (".json", ".yaml", ".yml")


class Kind(Enum):
    """The kind of a backend."""

    SERVER = auto()
    DEFINITION = auto()
    COMMAND = auto()


def kind_of(words: Sequence[str], *, openapi: bool) -> Kind:
    """Return the kind of a backend; raise AgentDoubleError if it is unclear.

    Several words are a command, and so is one that names a program.
    """
    if len(words) > 1:
        return Kind.COMMAND
    (backend,) = words
    if _is_url(backend):
        return Kind.SERVER
    if openapi or backend.lower().endswith(_SUFFIXES):
        return Kind.DEFINITION
    if shutil.which(backend) is not None:
        return Kind.COMMAND
    raise AgentDoubleError(
        f"{backend!r} is no backend: it is the URL of an MCP server, a Swagger or OpenAPI "
        "definition (with --openapi whatever it is called), or after -- a command."
    )


def request(backend: str, kind: Kind, base_url: str | None) -> dict[str, Any]:
    """Return the fields of CreateMCPService for a server or a definition."""
    if kind is Kind.SERVER:
        return {"ProtocolType": "MCP", **located(backend, "BACKEND")}
    where = {"Path": "/", "BackendType": "Custom"}
    if base_url is not None:
        where = located(base_url, "--base-url")
    definition = {"Configuration": _text(backend), "Type": "Swagger"}
    return {
        "ProtocolType": "HTTP",
        "ProtocolConfiguration": {"HttpApiConfiguration": definition},
        **where,
    }


def command_request(
    words: Sequence[str], directory: str | None, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return the fields of CreateMCPService for a command, whose directory is on this machine."""
    server = {
        "command": words[0],
        "args": [*words[1:]],
        "env": dict(environment),
        "cwd": str(Path(directory or ".").absolute()),
    }
    package = {"McpType": "stdio", "RawConfig": json.dumps(server)}
    return {
        "ProtocolType": "MCP",
        "Path": "/",
        "BackendType": "CustomMcp",
        "BackendConfiguration": {"CustomMcpConfiguration": {"PublicPackage": package}},
    }


def located(url: str, what: str) -> dict[str, Any]:
    """Return the fields with the address of a backend."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not _is_url(url) or not host or "@" in parts.netloc:
        raise AgentDoubleError(
            f"{what} is an address such as http://HOST:PORT/mcp, without user and password."
        )
    custom = {"Domain": host, "Port": port, "ProtocolType": parts.scheme}
    given = {name: value for name, value in custom.items() if value is not None}
    return {
        "Path": (parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
        "BackendType": "Custom",
        "BackendConfiguration": {"CustomConfiguration": given},
    }


def _is_url(text: str) -> bool:
    return text.lower().startswith(("http://", "https://"))


def _text(source: str) -> str:
    """Return the text of a definition."""
    try:
        with Path(source).open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise AgentDoubleError(f"{source} is larger than {LARGEST // 1024 // 1024} MiB.")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise AgentDoubleError(f"{source} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise AgentDoubleError(f"{source} is no text.") from None
