"""``GET /v1/sandbox``: a description of a session's sandbox, its commands and its limits."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentdouble.openapi import operation
from agentdouble.sandbox.data_plane.session_token import PREFIX, envelope, instance_of
from agentdouble.sandbox.workbench.paths import FACTS, HOME, TMP
from agentdouble.sandbox.workbench.wire import Envelope
from agentdouble.settings import MIB, Settings

_BUILT = {
    "/v1/jupyter": "Python, JavaScript and TypeScript in kernels that keep their state",
    "/v1/code": "Python and JavaScript, with stdout and stderr apart",
    "/v1/bash": "commands in bash sessions that keep their state",
    "/v1/shell": "exec runs a command on a terminal; ws is one to type at",
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
    """Describes sandboxes with facts from their workbench and the limits of the settings."""

    def __init__(self, settings: Settings, version: str) -> None:
        self._settings = settings
        self._version = version

    def route(self) -> Route:
        """Return the route."""
        return Route(f"{PREFIX}/sandbox", self.describe)

    @operation(Described)
    async def describe(self, request: Request) -> Response:
        """Return the description as a text for humans and as data."""
        instance = instance_of(request)
        async with instance.use_workbench() as workbench:
            facts = await workbench.get(FACTS)
        detail = {
            "system": facts["system"],
            "runtime": {"python": facts["python"], "nodejs": facts["nodejs"]},
            "utils": [
                _category("data plane", _BUILT),
                _category("commands", dict.fromkeys(facts["commands"])),
            ],
        }
        extra = {"home_dir": HOME, "workspace": HOME, "version": self._version, "detail": detail}
        return envelope(self._text(facts), extra=extra)

    def _text(self, facts: dict[str, Any]) -> str:
        system, settings = facts["system"], self._settings
        limits = (
            f"{settings.memory_limit // MIB} MiB of memory, "
            f"{settings.workspace_limit // MIB} MiB of files, "
            f"{settings.process_limit} processes, {settings.open_files_limit} open files; "
            f"code runs {settings.exec_timeout_s} s, {settings.exec_timeout_max_s} s at most, "
            f"and puts out {settings.output_limit} bytes at most"
        )
        lines = (
            f"A sandbox of agentdouble {self._version} on {system['os_version']}, {system['arch']}.",
            f"Home and working directory: {HOME}; for temporary files: {TMP}.",
            f"Python {facts['python'][0]['ver']}.",
            f"JavaScript and TypeScript: {_deno(facts['deno'])}.",
            f"Commands: {', '.join(facts['commands'])}.",
            f"Routes: {', '.join(_BUILT)}.",
            f"Limits: {limits}.",
        )
        return "\n".join(lines)


def _deno(version: str | None) -> str:
    return "not installed" if version is None else f"deno {version}"


def _category(name: str, tools: dict[str, Any]) -> dict[str, Any]:
    return {
        "category": name,
        "tools": [{"name": tool, "description": said} for tool, said in tools.items()],
    }
