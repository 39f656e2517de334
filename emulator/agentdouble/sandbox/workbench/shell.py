"""``/v1/shell/...``: commands in shells on a terminal."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from pydantic import BeforeValidator
from starlette.requests import Request
from starlette.routing import Route

from agentdouble.sandbox.workbench.bash import Name, Seconds, Text
from agentdouble.sandbox.workbench.bash_session import Command
from agentdouble.sandbox.workbench.keeper import BashSessions
from agentdouble.sandbox.workbench.output import shorten
from agentdouble.sandbox.workbench.paths import Paths
from agentdouble.sandbox.workbench.shell_session import ShellSession
from agentdouble.sandbox.workbench.wire import (
    Answer,
    FailedError,
    RequestBody,
    cancellable,
    post,
    without_body,
)

SHOWN_CHARS = 30_000
_STATUS = {
    "pending": "running",
    "running": "running",
    "completed": "completed",
    "timed_out": "hard_timeout",
    "killed": "terminated",
}

# The platform's own client sends "" for a new shell, and for no directory.
_Absent = BeforeValidator(lambda given: None if given == "" else given)
OptionalName = Annotated[Name | None, _Absent]
OptionalText = Annotated[Text | None, _Absent]


class Exec(RequestBody):
    """A command; ``hard_timeout`` ends it, ``timeout`` and ``no_change_timeout`` end the wait."""

    id: OptionalName = None
    exec_dir: OptionalText = None
    command: Text
    async_mode: bool = False
    timeout: Seconds | None = None
    strict: bool | None = None
    no_change_timeout: Seconds | None = None
    hard_timeout: Seconds | None = None
    truncate: bool = True


class Which(RequestBody):
    """The id of a shell."""

    id: str


class Wait(Which):
    """The limits of the wait for the running command, in seconds."""

    seconds: Seconds | None = None
    max_wait_seconds: Seconds | None = None


class Write(Which):
    """The input to type."""

    input: str
    press_enter: bool


class Create(RequestBody):
    """A request to create a shell."""

    id: OptionalName = None
    exec_dir: OptionalText = None
    no_change_timeout: Seconds | None = None


class Shell:
    """The shells of a sandbox; ``memory_limit`` (bytes) applies to each process in them."""

    def __init__(self, paths: Paths, memory_limit: int | None) -> None:
        self._sessions = BashSessions("shell", ShellSession, paths, memory_limit)

    def routes(self) -> list[Route]:
        """Return the routes below ``/v1/shell``."""
        return [
            cancellable("/v1/shell/exec", Exec, self.exec),
            post("/v1/shell/view", Which, self.view),
            post("/v1/shell/wait", Wait, self.wait),
            post("/v1/shell/write", Write, self.write),
            post("/v1/shell/kill", Which, self.kill),
            post("/v1/shell/sessions/create", Create, self.create),
            without_body("/v1/shell/sessions", self.sessions, "GET"),
            without_body("/v1/shell/sessions", self.close_all, "DELETE"),
            without_body("/v1/shell/sessions/{session_id}", self.close, "DELETE"),
        ]

    async def exec(self, body: Exec) -> Answer:
        """Run a command and return the terminal's output; wait as long as the body says."""
        directory = self._sessions.directory(body.exec_dir, strict=bool(body.strict))
        session = await self._sessions.get_or_make(body.id, directory)
        command = Command(body.command, {}, directory, body.hard_timeout)
        prompt = session.prompt
        session.run(command)
        still = body.no_change_timeout or session.no_change_timeout_s
        with session.interrupting(command):
            changing = body.async_mode or await _settled(session, command, body.timeout, still)
        status = _STATUS[command.status] if changing else "no_change_timeout"
        output, _ = session.stdout.read(command.begins[0], command.ends[0])
        output = shorten(output, SHOWN_CHARS if body.truncate else 0)
        record = {"ps1": prompt, "command": command.text, "output": output}
        data = {
            "session_id": session.id,
            "command": command.text,
            "status": status,
            "output": output,
            "console": [record],
            "exit_code": command.exit_code,
        }
        return Answer(data, f"Command {status}")

    async def view(self, body: Which) -> Any:
        """Return the output of a shell's terminal, and the last command."""
        session = self._sessions.find(body.id)
        last = session.commands[-1] if session.commands else None
        output, _ = session.stdout.read(0)
        console = [
            {
                "ps1": session.prompt,
                "command": one.text,
                "output": session.stdout.read(one.begins[0], one.ends[0])[0],
            }
            for one in session.commands
        ]
        return {
            "session_id": session.id,
            "output": output,
            "console": console,
            "status": _status(session),
            "command": None if last is None else last.text,
            "exit_code": None if last is None else last.exit_code,
        }

    async def wait(self, body: Wait) -> Any:
        """Wait for the running command."""
        session = self._sessions.find(body.id)
        limits = [s for s in (body.seconds, body.max_wait_seconds) if s is not None]
        running = session.current
        if running is not None:
            await _settled(session, running, min(limits, default=None), None)
        return {"status": _status(session)}

    async def write(self, body: Write) -> Any:
        """Type into the terminal."""
        session = self._sessions.find(body.id)
        if session.current is None:
            raise FailedError(f"Nothing runs in the shell {session.id!r}.")
        await session.write(body.input + "\n" * body.press_enter)
        return {"status": _status(session)}

    async def kill(self, body: Which) -> Any:
        """Kill the running command of a shell."""
        session = self._sessions.find(body.id)
        running = session.current
        if running is None:
            raise FailedError(f"Nothing runs in the shell {session.id!r}.")
        await session.kill(running)
        code = running.exit_code
        return {"status": _STATUS[running.status], "exit_code": code, "returncode": code}

    async def create(self, body: Create) -> Any:
        """Create a shell; return an existing one of that name as it is."""
        session = await self._sessions.get_or_make(body.id, self._sessions.directory(body.exec_dir))
        if body.no_change_timeout is not None:
            session.no_change_timeout_s = body.no_change_timeout
        return {"session_id": session.id, "working_dir": session.working_dir}

    async def sessions(self, _request: Request) -> Any:
        """Return the shells by name."""
        return {"sessions": {one.id: _shown(one) for one in self._sessions}}

    async def close_all(self, _request: Request) -> Answer:
        """End every shell and all processes that they have started."""
        await self._sessions.close_all()
        return Answer(None, "Every shell is closed")

    async def close(self, request: Request) -> Answer:
        """End a shell and all processes that it has started."""
        session_id = request.path_params["session_id"]
        await self._sessions.close(session_id)
        return Answer(None, f"The shell {session_id!r} is closed")


def _status(session: ShellSession) -> str:
    running = session.current
    if running is not None:
        return "running"
    last = session.commands[-1] if session.commands else None
    return "completed" if last is None else _STATUS[last.status]


def _shown(session: ShellSession) -> dict[str, Any]:
    shown = session.to_dict()
    age = session.last_used_at - session.created_at
    kept = ("working_dir", "created_at", "last_used_at", "current_command")
    found = {name: shown[name] for name in kept}
    return {**found, "age_seconds": int(age.total_seconds()), "status": _status(session)}


async def _settled(
    session: ShellSession, command: Command, timeout_s: float | None, still_s: float | None
) -> bool:
    """Wait for a command, at most ``timeout_s``.

    Return False if there was no new output for ``still_s``, else True.
    """
    loop = asyncio.get_running_loop()
    deadline = None if timeout_s is None else loop.time() + timeout_s
    while not command.done.is_set():
        left = None if deadline is None else deadline - loop.time()
        if left is not None and left <= 0:
            break
        patience = min((s for s in (left, still_s) if s is not None), default=None)
        changed = asyncio.ensure_future(session.stdout.changed())
        done = asyncio.ensure_future(command.done.wait())
        try:
            news, _ = await asyncio.wait(
                {changed, done}, timeout=patience, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            changed.cancel()
            done.cancel()
        if not news and patience == still_s and not command.done.is_set():
            return False
    return True
