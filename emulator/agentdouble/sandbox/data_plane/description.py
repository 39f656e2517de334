"""``GET /v1/sandbox``: a description of a session's sandbox and its limits."""

from __future__ import annotations

import datetime as dt
import platform
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentdouble.openapi import operation
from agentdouble.sandbox.data_plane.session_token import PREFIX
from agentdouble.sandbox.workbench.wire import HOME, TMP, Envelope, envelope
from agentdouble.settings import MIB, Settings

_BUILT = {
    "/v1/jupyter": "Python, JavaScript and TypeScript in kernels that keep their state",
    "/v1/code": "Python and JavaScript, with stdout and stderr apart",
    "/v1/bash": "commands in bash sessions that keep their state",
    "/v1/shell": "exec runs a command, wait waits for its end; ws is a terminal to type at",
    "/v1/file": "read, write, replace, search, find, list, upload, download",
    "/v1/browser": "a Chromium: DevTools protocol, and screenshots",
}


class Described(Envelope):
    """The description of a sandbox, as a text and as data."""

    home_dir: str
    workspace: str
    version: str
    detail: dict[str, Any]


class Description:
    """Describes sandboxes with facts about this machine and the limits of the settings."""

    def __init__(self, settings: Settings, version: str) -> None:
        self._settings = settings
        self._version = version

    def route(self) -> Route:
        """Return the route."""
        return Route(f"{PREFIX}/sandbox", self.describe)

    @operation(Described)
    async def describe(self, _request: Request) -> Response:
        """Return the description as a text for humans and as data."""
        routes = [{"name": name, "description": text} for name, text in _BUILT.items()]
        detail = {
            "system": {
                "os": platform.system(),
                "os_version": platform.release(),
                "arch": platform.machine(),
                "user": "gem",
                "home_dir": HOME,
                "workspace": HOME,
                "timezone": str(dt.datetime.now().astimezone().tzinfo),
                "occupied_ports": [],
            },
            "runtime": {"python": [{"ver": platform.python_version(), "bin": None}], "nodejs": []},
            "utils": [{"category": "data plane", "tools": routes}],
        }
        extra = {"home_dir": HOME, "workspace": HOME, "version": self._version, "detail": detail}
        return envelope(self._text(), extra=extra)

    def _text(self) -> str:
        settings = self._settings
        return (
            f"A sandbox of agentdouble {self._version} on {platform.system()}, "
            f"{platform.machine()}, with Python {platform.python_version()}.\n"
            f"Home and working directory: {HOME}; for temporary files: {TMP}.\n"
            f"Routes: {', '.join(_BUILT)}.\n"
            f"Limits: {settings.memory_limit // MIB} MiB of memory, "
            f"{settings.workspace_limit // MIB} MiB of files, "
            f"{settings.process_limit} processes, {settings.open_files_limit} open files; "
            f"code runs {settings.exec_timeout_s} s, {settings.exec_timeout_max_s} s at most, "
            f"and puts out {settings.output_limit} bytes at most."
        )
