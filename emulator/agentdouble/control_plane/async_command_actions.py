"""AsyncExecCommand and ViewAsyncCommand: commands that run on after the answer.

The platform's samples send them; no published client has them yet.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from typing import Any, Literal

from agentdouble.control_plane import public_errors, wire
from agentdouble.control_plane.action_methods import ActionMethods, action
from agentdouble.errors import AgentDoubleError
from agentdouble.sandbox.session import SandboxSession
from agentdouble.sandbox.sessions import SandboxSessions

REMEMBERED = 1000  # commands, of all sessions
LONGEST_S = 86_400

Status = Literal["Running", "Succeeded", "Failed", "Unknown"]


class AsyncExecCommand(wire.Wire):
    """The body of AsyncExecCommand."""

    ToolId: str
    SessionId: str
    Command: str
    ExecDir: str | None = None


class ViewAsyncCommand(wire.Wire):
    """The body of ViewAsyncCommand."""

    ToolId: str
    SessionId: str
    TaskId: str


class AsyncCommandActions(ActionMethods):
    """The actions on commands that run on; the newest 1,000 are remembered."""

    def __init__(self, sessions: SandboxSessions) -> None:
        self._sessions = sessions
        self._tasks: OrderedDict[tuple[str, str], asyncio.Task[tuple[Status, str, int]]] = (
            OrderedDict()
        )

    @action(
        "AsyncExecCommand", AsyncExecCommand, ToolId=str, SessionId=str, TaskId=str, Status=Status
    )
    async def start(self, request: AsyncExecCommand) -> dict[str, Any]:
        """Start a command in a bash of its own, and return before it ends."""
        if not request.Command.strip():
            raise public_errors.invalid("Command", "it must not be empty")
        session = await self._sessions.look_up(request.SessionId, request.ToolId)
        session.check_usable()
        task_id = f"task-{secrets.token_hex(10)}"
        self._tasks[session.id, task_id] = asyncio.ensure_future(self._run(session, request))
        if len(self._tasks) > REMEMBERED:
            self._tasks.popitem(last=False)
        return self._shown(request, task_id, "Running")

    @action(
        "ViewAsyncCommand",
        ViewAsyncCommand,
        ToolId=str,
        SessionId=str,
        TaskId=str,
        Status=Status,
        Output=str,
        ExitCode=int,
    )
    async def view(self, request: ViewAsyncCommand) -> dict[str, Any]:
        """Return how a command stands; its Output and ExitCode are there when it has ended."""
        session = await self._sessions.look_up(request.SessionId, request.ToolId)
        task = self._tasks.get((session.id, request.TaskId))
        status: Status = "Unknown" if task is None else "Running"
        output, code = "", 0
        if task is not None and task.done():
            status, output, code = task.result()
        return {**self._shown(request, request.TaskId, status), "Output": output, "ExitCode": code}

    def _shown(
        self, request: AsyncExecCommand | ViewAsyncCommand, task_id: str, status: Status
    ) -> dict[str, Any]:
        return {
            "ToolId": request.ToolId,
            "SessionId": request.SessionId,
            "TaskId": task_id,
            "Status": status,
        }

    async def _run(
        self, session: SandboxSession, request: AsyncExecCommand
    ) -> tuple[Status, str, int]:
        command: dict[str, Any] = {"command": request.Command, "timeout": LONGEST_S}
        if request.ExecDir:
            command["exec_dir"] = request.ExecDir
        publisher = self._sessions.feed.publisher(session.key)
        try:
            answer = await session.processes.exec_bash(command, publisher, alone=True)
        except AgentDoubleError as error:  # the session has ended, for example
            return "Failed", str(error), -1
        data = answer.get("data") or {}
        if data.get("exit_code") is None:
            return "Failed", answer.get("message") or "", -1
        output = f"{data.get('stdout') or ''}{data.get('stderr') or ''}"
        return ("Failed" if data["exit_code"] else "Succeeded"), output, data["exit_code"]
