"""The workbench's process: an ASGI application, served on a Unix socket.

The fork server calls ``run`` in a fork. Without a fork server this module is a program with the
arguments ``"" CONFIG FD``: CONFIG is JSON, FD is a listening Unix socket. The program ends when its
standard input is closed.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import socket
import sys
from typing import Any

import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from agentdouble.sandbox.workbench import processes
from agentdouble.sandbox.workbench.bash import Bash
from agentdouble.sandbox.workbench.files import Files
from agentdouble.sandbox.workbench.shell import Shell
from agentdouble.sandbox.workbench.terminals import Terminals
from agentdouble.sandbox.workbench.transfer import Transfer
from agentdouble.sandbox.workbench.wire import (
    DIRECTORY,
    HOME,
    TMP,
    FailedError,
    Paths,
    RequestBody,
    failed,
    invalid,
    post,
    unrouted,
)


class DirectoryRequest(RequestBody):
    """A directory, as a path of the session."""

    path: str


def _directories(paths: Paths) -> Route:
    async def directory(body: DirectoryRequest) -> str:
        """Return the real path of a directory of the session."""
        try:
            path = paths.real(body.path)
        except OSError as error:
            raise FailedError(str(error.strerror)) from None
        if not os.path.isdir(path):  # noqa: ASYNC240, PTH112
            raise FailedError("it is not a directory")
        return path

    return post(DIRECTORY, DirectoryRequest, directory)


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
    options = config["Workbench"]
    mapped = ((HOME, options["home"]), (TMP, options["tmp"])) if options.get("home") else ()
    app = build(Paths(mapped), options.get("memory_limit"))
    configured = uvicorn.Config(
        app,
        http=HttpToolsProtocol,
        ws=WebSocketsSansIOProtocol,
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=0,
    )
    server = uvicorn.Server(configured)
    asyncio.run(_serve(server, socket.socket(fileno=listener), until_end_of))


async def _serve(server: uvicorn.Server, listener: socket.socket, pipe: int | None) -> None:
    if pipe is not None:
        _end_with(pipe)
    if sys.platform == "linux":
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, processes.reap_orphans)
        # Before 3.12, by default a thread waits for each child. A fork bomb leaves no room for threads.
        if sys.version_info < (3, 12):
            watcher = asyncio.PidfdChildWatcher()
            watcher.attach_loop(loop)
            asyncio.set_child_watcher(watcher)
    await server.serve(sockets=[listener])


def _end_with(descriptor: int) -> None:
    """End this process, and all that it has started, when the other end of a pipe is closed."""
    loop = asyncio.get_running_loop()

    def on_readable() -> None:
        if not os.read(descriptor, 1):
            processes.kill_tree(os.getpid(), include_leader=False)
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
            _directories(paths),
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
    run("", json.loads(sys.argv[2]), int(sys.argv[3]), until_end_of=0)
