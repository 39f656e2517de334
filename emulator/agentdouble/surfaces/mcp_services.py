"""The MCP services that actions create, and the processes of those whose backend is a command."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from agentdouble import mcp_hosting
from agentdouble.control_plane.action_methods import Action
from agentdouble.core.threads import import_in_thread, run_in_thread
from agentdouble.errors import McpServiceError, RuntimeStartError
from agentdouble.mcp_services import OpenApiBackend, Services
from agentdouble.mcp_services.commands import CommandBackend
from agentdouble.mcp_services.started_process import LONGEST_LINE
from agentdouble.openapi import Format
from agentdouble.runtimes.logs import InstanceLog, RuntimeLogs
from agentdouble.runtimes.streams import Conversation, Process
from agentdouble.surfaces.runtimes import Runtimes
from agentdouble.surfaces.surface import DataPart, Surface, SurfaceContext, counted

if TYPE_CHECKING:
    from agentdouble.processes.workspace import Workspace


class ServicePrograms:
    """Starts the processes of services with the runtimes' launcher, and keeps their logs.

    The processes of a service share a home directory: packages that one has
    downloaded, and files that a server stores there, remain until the service is deleted.
    """

    def __init__(self, context: SurfaceContext) -> None:
        self._context = context
        self._logs: dict[str, RuntimeLogs] = {}
        self._workspaces: dict[str, Workspace] = {}
        self._numbers = itertools.count(1)

    async def start(self, service: str, command: CommandBackend) -> StartedProgram:
        """Start a process of a service; raise McpServiceError."""
        launcher = await self._context.surface(Runtimes).launcher()
        from agentdouble.runtimes.definition import Definition  # slow: 10 ms

        if service not in self._workspaces:
            self._workspaces[service] = launcher.make_workspace()
        log = self.logs(service).open(f"{service}-{next(self._numbers)}")
        conversation = Conversation(log, self._workspaces[service], LONGEST_LINE)
        definition = Definition.model_construct(
            name=service,
            command=command.command,
            directory=command.directory,
            environment=dict(command.environment),
            sources=command.sources,
        )
        try:
            process = await launcher.converse(definition, conversation)
        except RuntimeStartError as error:
            log.note(error.reason)
            raise McpServiceError(
                f"The MCP service {service!r} gave no valid answer: its command does not start: "
                f"see /_emulator/mcp-services/{service}/logs.",
                service=service,
            ) from error
        log.note("started")
        return StartedProgram(process, conversation, log)

    async def forget(self, service: str) -> None:
        """Remove the files and the log of a service whose processes have ended."""
        self._logs.pop(service, None)
        workspace = self._workspaces.pop(service, None)
        if workspace is not None:
            await run_in_thread(workspace.remove)

    def logs(self, service: str) -> RuntimeLogs:
        """Return what the processes of a service have printed."""
        if service not in self._logs:
            self._logs[service] = RuntimeLogs(self._context.clock)
        return self._logs[service]


class StartedProgram:
    """A process of a service."""

    def __init__(self, process: Process, conversation: Conversation, log: InstanceLog) -> None:
        self.lines = conversation.lines
        self.input = conversation.input
        self._process = process
        self._conversation = conversation
        self._log = log
        self._told = False

    def log(self, line: bytes) -> None:
        """Add an output line that is not a message to the service's log."""
        self._log.feed("stdout", line if line.endswith(b"\n") else line + b"\n")

    def note(self, text: str) -> None:
        """Add a message of the double to the service's log."""
        self._log.note(text)

    async def wait(self) -> None:
        """Return when it has ended."""
        await asyncio.wait({self._process.exited})

    async def end(self, patience_s: float) -> str:
        """Terminate it, then kill it; return how it ended when all its processes are gone."""
        await self._process.end(patience_s)
        self._conversation.close()
        manner = self._process.manner
        if not self._told:
            self._told = True
            self._log.note(f"its process {manner}")
        return manner


class MCPServices(Surface):
    """MCP services (MCS), each at its own address."""

    name = "MCP services"

    def __init__(self, context: SurfaceContext) -> None:
        super().__init__(context)
        clock, store = context.clock, context.store
        self._host = mcp_hosting.Host()
        self.programs = ServicePrograms(context)
        self.services = Services(clock, self._host, self.programs, store)
        self.services.publish_to(context.events)

    def paths(self) -> Mapping[str, str]:
        """Return the path of all endpoints."""
        return {f"{mcp_hosting.PREFIX}<name>": "the service of that name, with its key"}

    def state(self) -> str:
        """Return the number of services."""
        return counted(len(self.services.all()), "service")

    def routes(self) -> Sequence[BaseRoute]:
        """Return the route of all endpoints."""
        return [Route(mcp_hosting.PREFIX + "{name:path}", self._host)]

    def format(self) -> Format:
        """Return the format of JSON-RPC, with a key of the service."""
        return Format(self.name, security=("serviceKey",))

    def actions(self) -> Mapping[str, Action]:
        """Return the actions that manage services."""
        from agentdouble.control_plane.actions import MCPServiceActions  # slow: 60 ms

        sources = self.context.surface(Runtimes).sources
        return MCPServiceActions(self.services, sources).by_name()

    def admin_routes(self) -> Sequence[BaseRoute]:
        """Return the routes for the logs of commands, and for warnings about definitions."""
        return [
            Route("/mcp-services/{name}/logs", self._logs),
            Route("/mcp-services/{name}/warnings", self._warnings),
        ]

    async def _warnings(self, request: Request) -> Response:
        """Return what keeps calls of a service from succeeding, as a list of sentences."""
        backend = self.services.named(request.path_params["name"]).backend
        if not isinstance(backend, OpenApiBackend):
            return JSONResponse([])
        return JSONResponse([*backend.warnings, *await backend.unreachable()])

    async def _logs(self, request: Request) -> Response:
        """Return what the processes of a service have printed."""
        await import_in_thread("agentdouble.runtimes.hosting")
        from agentdouble.runtimes.hosting import printed  # slow: 0.1 s

        service = self.services.named(request.path_params["name"])
        return printed(request, self.programs.logs(service.name))

    async def restore(self) -> None:
        await self.services.load()

    def parts(self) -> Sequence[DataPart]:
        """Return the services."""
        return [DataPart("mcp", lambda _wait: self.services.reset(), in_state=True)]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._host.running():
            yield

    def begin_shutdown(self) -> None:
        self._host.begin_shutdown()
