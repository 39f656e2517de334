"""The processes of MCP services whose backend is a command: started and confined as runtimes are."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

from agentdouble.errors import RuntimeStartError, ServiceUnansweredError
from agentdouble.mcp_services.stdio import LONGEST_LINE, Program
from agentdouble.surfaces.runtimes import Runtimes
from agentdouble.surfaces.surface import Context
from agentdouble.threads import run_in_thread

if TYPE_CHECKING:
    from agentdouble.processes.workspace import Workspace
    from agentdouble.runtimes.logs import InstanceLog
    from agentdouble.runtimes.process import Process
    from agentdouble.runtimes.runtime_logs import RuntimeLogs
    from agentdouble.runtimes.streams import Conversation


class ServicePrograms:
    """Starts the processes of services with the launcher of the runtimes, and keeps their logs.

    The processes of a service share a home directory: what a package runner has fetched for one is
    there for the next, and so is what a server keeps there, until the service is deleted.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._logs: dict[str, RuntimeLogs] = {}
        self._workspaces: dict[str, Workspace] = {}
        self._numbers = itertools.count(1)

    async def start(self, service: str, program: Program) -> StartedProgram:
        """Start a process of a service; raise ServiceUnansweredError."""
        launcher = await self._context.surface(Runtimes).launcher()
        from agentdouble.runtimes import definition, readiness
        from agentdouble.runtimes.streams import Conversation

        if service not in self._workspaces:
            self._workspaces[service] = launcher.make_workspace()
        log = self.logs(service).open(f"{service}-{next(self._numbers)}")
        conversation = Conversation(log, self._workspaces[service], LONGEST_LINE)
        runs = definition.Program(
            program.directory, command=program.command, sources=program.sources
        )
        wanted = definition.Definition(service, runs, program.environment)
        try:
            process = await launcher.converse(wanted, log, conversation)
        except RuntimeStartError as error:
            log.note(error.reason)
            why = f"its command does not start: see /_emulator/mcp-services/{service}/logs."
            raise ServiceUnansweredError(service, why) from error
        hidden = readiness.what_is_hidden(process.hidden)
        log.note(f"started{hidden}")
        return StartedProgram(process, conversation, log, hidden)

    async def forget(self, service: str) -> None:
        """Remove the files and the log of a service whose processes have ended."""
        self._logs.pop(service, None)
        workspace = self._workspaces.pop(service, None)
        if workspace is not None:
            await run_in_thread(workspace.remove)

    def logs(self, service: str) -> RuntimeLogs:
        """Return what the processes of a service have printed."""
        from agentdouble.runtimes.runtime_logs import RuntimeLogs

        if service not in self._logs:
            self._logs[service] = RuntimeLogs(self._context.clock)
        return self._logs[service]


class StartedProgram:
    """A process of a service; ``hidden`` says which paths it does not see."""

    def __init__(
        self, process: Process, conversation: Conversation, log: InstanceLog, hidden: str
    ) -> None:
        self.lines = conversation.lines
        self.input = conversation.input
        self._process = process
        self._conversation = conversation
        self._log = log
        self._hidden = hidden
        self._told = False

    def log(self, line: bytes) -> None:
        """Add a line of its output that is no message to the service's log."""
        self._log.feed("stdout", line if line.endswith(b"\n") else line + b"\n")

    def note(self, text: str) -> None:
        """Add a message of the double to the service's log."""
        self._log.note(text)

    async def wait(self) -> None:
        """Return when it has ended."""
        await asyncio.wait({self._process.exited})

    async def end(self, patience_s: float) -> str:
        """Ask it to end, then kill it; when nothing of it is left, return how it ended and what it did not see."""
        await self._process.end(patience_s)
        self._conversation.close()
        manner = self._process.manner
        if not self._told:
            self._told = True
            self._log.note(f"its process {manner}")
        return manner + self._hidden
