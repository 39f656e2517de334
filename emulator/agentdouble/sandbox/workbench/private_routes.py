"""The routes for the double only: facts about the sandbox, and the real path of a directory."""

from __future__ import annotations

import datetime as dt
import os
import platform
import pwd
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
from starlette.requests import Request
from starlette.routing import Route

from agentdouble.sandbox.workbench import processes
from agentdouble.sandbox.workbench.paths import DIRECTORY, FACTS, HOME, Paths
from agentdouble.sandbox.workbench.wire import FailedError, RequestBody, post, without_body

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
