"""The servers, and the calls to each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.real_servers.environments import Environment, Npm, Python

LEGACY, AUTO = "legacy", "auto"
_OFFICIAL = "@modelcontextprotocol"


@dataclass(frozen=True)
class Call:
    """A tool call: ``says`` is part of its result, ``hears`` the messages to the client meanwhile."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    says: str = "done"
    hears: str | None = None

    @property
    def name(self) -> str:
        return self.hears or self.tool


@dataclass(frozen=True)
class Server:
    """A server and its commands for standard streams and for HTTP, with $PORT as its port."""

    name: str
    environment: Environment
    calls: Sequence[Call]
    modern_calls: Sequence[Call]
    stdio: Sequence[str] = ()
    http: Sequence[str] | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


_EVERYTHING = (
    Call("echo", {"message": "hé"}, "Echo: hé"),
    Call(
        "trigger-long-running-operation",
        {"duration": 0.2, "steps": 2},
        "completed",
        "progress",
    ),
    Call("trigger-sampling-request", {"prompt": "What?"}, "Paris", "sampling"),
    Call("trigger-elicitation-request", {}, "provided", "elicitation"),
    Call("get-roots-list", {}, "real_servers", "roots"),
)
_PROGRESS, _LOG = Call("progress", hears="progress"), Call("log", hears="logging")
_ELICIT = Call("elicit", says="ann", hears="elicitation")
_SAMPLE = Call("sample", says="Paris", hears="sampling")
_ENTITY = {"name": "ann", "entityType": "person", "observations": []}

SERVERS = (
    Server(
        "server-everything",
        Npm(f"{_OFFICIAL}/server-everything/dist/index.js"),
        _EVERYTHING,
        _EVERYTHING,
        ("stdio",),
        ("streamableHttp",),
    ),
    Server(
        "server-filesystem",
        Npm(f"{_OFFICIAL}/server-filesystem/dist/index.js"),
        calls := (
            Call("list_directory", {"path": "."}, "[FILE] servers.py"),
            Call("read_text_file", {"path": "servers.py"}, "The servers, and what is run"),
        ),
        calls,
        (".",),
    ),
    Server(
        "server-memory",
        Npm(f"{_OFFICIAL}/server-memory/dist/index.js"),
        calls := (
            Call("create_entities", {"entities": [_ENTITY]}, ""),
            Call("read_graph", {}, "ann"),
        ),
        calls,
        variables={"MEMORY_FILE_PATH": "/home/gem/memory.json"},
    ),
    Server(
        "fastmcp 2",
        Python("fastmcp>=2,<3", "fastmcp_server.py"),
        calls := (_PROGRESS, _LOG, _SAMPLE, _ELICIT),
        calls,
        ("stdio",),
        ("$PORT",),
    ),
    # fastmcp 4 has no sampling; in the newest era it takes no questions that servers send
    Server(
        "fastmcp 4",
        Python("fastmcp>=4,<5", "fastmcp_server.py"),
        (_PROGRESS, _LOG, _ELICIT),
        (_PROGRESS,),
        ("stdio",),
        ("$PORT",),
    ),
)

# servers on the SDK of TypeScript, which the official suite is put to; the first does what it asks
ON_TYPESCRIPT = {
    "everything.mjs": Npm("everything.mjs", bundled=True),
    "server-everything": Npm(f"{_OFFICIAL}/server-everything/dist/index.js"),
    "simpleStreamableHttp": Npm(
        f"{_OFFICIAL}/sdk/dist/esm/examples/server/simpleStreamableHttp.js"
    ),
    "honoWebStandardStreamableHttp": Npm(
        f"{_OFFICIAL}/sdk/dist/esm/examples/server/honoWebStandardStreamableHttp.js"
    ),
}
