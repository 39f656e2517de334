"""The servers, their environments, and the calls to each."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.real_clients import environments

HERE = Path(__file__).parent
LEGACY, AUTO = "legacy", "auto"
_OFFICIAL = "@modelcontextprotocol"


@dataclass(frozen=True)
class Npm:
    """A program from the packages that ``from_npm`` pins, or one of ours that uses them."""

    program: str
    bundled: bool = False

    def make(self, cache: Path) -> None:
        environments.install_npm(HERE / "from_npm", cache / "npm")

    def command(self, cache: Path) -> Sequence[str]:
        folder = cache / "npm"
        if self.bundled:  # Node looks for packages beside the program
            shutil.copy(HERE / "programs" / self.program, folder)
            return [environments.node().node, str(folder / self.program)]
        return [environments.node().node, str(folder / "node_modules" / self.program)]


class FastMcp(environments.Python):
    """A program of ours in a virtual environment with some version of FastMCP."""

    def command(self, cache: Path) -> Sequence[str]:
        return [self.python(cache), str(HERE / "programs" / "fastmcp_server.py")]


Environment = Npm | FastMcp


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
            Call(
                "read_text_file",
                {"path": "servers.py"},
                "The servers, their environments, and the calls",
            ),
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
        FastMcp("fastmcp", ("fastmcp>=2,<3",)),
        calls := (_PROGRESS, _LOG, _SAMPLE, _ELICIT),
        calls,
        ("stdio",),
        ("$PORT",),
    ),
    # fastmcp 4 has no sampling; in the newest era it takes no questions that servers send
    Server(
        "fastmcp 4",
        FastMcp("fastmcp", ("fastmcp>=4,<5",)),
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
