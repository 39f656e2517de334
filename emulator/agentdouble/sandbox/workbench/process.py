"""The workbench's process: an ASGI application, served on a Unix socket.

The fork server calls ``run`` in a fork. Without a fork server this module is a program with the
arguments ``FD CONFIG``: FD is a listening Unix socket, CONFIG is JSON. The program ends when its
standard input is closed.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import json
import os
import platform
import pwd
import shutil
import signal
import socket
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from agentdouble.sandbox.workbench import processes
from agentdouble.sandbox.workbench.bash import Bash
from agentdouble.sandbox.workbench.files import Files
from agentdouble.sandbox.workbench.paths import DIRECTORY, FACTS, HOME, TMP, Paths
from agentdouble.sandbox.workbench.shell import Shell
from agentdouble.sandbox.workbench.terminals import Terminals
from agentdouble.sandbox.workbench.transfer import Transfer
from agentdouble.sandbox.workbench.wire import (
    FailedError,
    RequestBody,
    failed,
    invalid,
    post,
    unrouted,
    without_body,
)

_LOOKED_FOR = ("bash", "curl", "gcc", "git", "jq", "make", "node", "rg", "tar", "tmux", "wget")


def routes(paths: Paths) -> list[Route]:
    """Return the routes."""

    async def directory(body: DirectoryRequest) -> Any:
        try:
            return _directory(paths.real(body.path))
        except OSError as error:
            raise FailedError(str(error.strerror)) from None

    return [without_body(FACTS, _facts, "GET"), post(DIRECTORY, DirectoryRequest, directory)]


async def _facts(_request: Request) -> Any:
    """Return the machine, user, runtimes and commands that a process in this sandbox sees."""
    path = processes.environment()["PATH"]
    found = {name: shutil.which(name, path=path) for name in _LOOKED_FOR}
    commands = {name: where for name, where in found.items() if where is not None}
    return {
        "system": {
            "os": platform.system(),
            "os_version": _os_version(),
            "arch": platform.machine(),
            "user": _user(),
            "home_dir": HOME,
            "workspace": HOME,
            "timezone": str(dt.datetime.now().astimezone().tzinfo),
            "occupied_ports": _occupied_ports(),
        },
        "python": [{"ver": platform.python_version(), "bin": shutil.which("python3", path=path)}],
        "nodejs": [{"ver": None, "bin": commands["node"]}] if "node" in commands else [],
        "deno": _version("deno"),
        "commands": sorted(commands),
    }


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _os_version() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.release()


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # the user of a session may have no name
        return str(os.geteuid())


def _occupied_ports() -> list[str]:
    """Return the TCP ports on which a process listens; none if the machine does not list them."""
    try:
        listening = psutil.net_connections("tcp")
    except (psutil.Error, OSError):
        return []
    ports = {
        port for one in listening if one.status == psutil.CONN_LISTEN for port in one.laddr[1:]
    }
    return [str(port) for port in sorted(ports)]


class DirectoryRequest(RequestBody):
    """A directory, as a path of the session."""

    path: str


def _directory(path: str) -> str:
    if not Path(path).is_dir():
        raise FailedError("it is no directory")
    return path


def run(
    _connection_file: str,
    config: dict[str, Any],
    listener: int,
    *,
    until_end_of: int | None = None,
) -> None:
    """Serve on a listening Unix socket until this process ends or ``until_end_of``, a pipe, closes.

    ``config["Workbench"]`` holds ``memory_limit`` (bytes), for each process that this one starts.
    If the session has no file system view of its own, it also holds ``home`` and ``tmp``, the real
    directories of /home/gem and /tmp.
    """
    gc.enable()  # the fork server has disabled it
    given = config["Workbench"]
    mapped = ((HOME, given["home"]), (TMP, given["tmp"])) if given.get("home") else ()
    app = build(Paths(mapped), given.get("memory_limit"))
    server = uvicorn.Server(_configured(app))
    asyncio.run(_serve(server, socket.socket(fileno=listener), until_end_of))


def _configured(app: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=HttpToolsProtocol,
        ws=WebSocketsSansIOProtocol,
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=0,
    )


async def _serve(server: uvicorn.Server, listener: socket.socket, pipe: int | None) -> None:
    if pipe is not None:
        _end_with(pipe)
    if sys.platform == "linux":
        _attend_children()
    await server.serve(sockets=[listener])


def _attend_children() -> None:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGCHLD, processes.reap_orphans)
    # Before 3.12, by default a thread waits for each child. A fork bomb leaves no room for threads.
    if sys.version_info < (3, 12):
        watcher = asyncio.PidfdChildWatcher()
        watcher.attach_loop(loop)
        asyncio.set_child_watcher(watcher)


def _end_with(descriptor: int) -> None:
    """End this process, and all that it has started, when the other end of a pipe is closed."""
    loop = asyncio.get_running_loop()

    def on_readable() -> None:
        if not os.read(descriptor, 1):
            processes.kill_tree(os.getpid(), itself=False)
            os._exit(0)

    loop.add_reader(descriptor, on_readable)


def build(paths: Paths, memory_limit: int | None) -> Starlette:
    """Return the application; ``memory_limit`` (bytes) applies to each process that it starts."""
    return Starlette(
        routes=[
            *Bash(paths, memory_limit).routes(),
            *Shell(paths, memory_limit).routes(),
            Terminals(paths, memory_limit).route(),
            *Files(paths).routes(),
            *Transfer(paths).routes(),
            *routes(paths),
        ],
        exception_handlers={
            FailedError: failed,
            HTTPException: unrouted,
            ValidationError: invalid,
        },
    )


if __name__ == "__main__":
    if sys.platform == "linux":
        from agentdouble.processes.fork_server.processes import adopt_orphans

        adopt_orphans()
    run("", json.loads(sys.argv[2]), int(sys.argv[1]), until_end_of=0)
