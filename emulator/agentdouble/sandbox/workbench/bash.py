"""``/v1/bash/...``: commands in bash sessions, with separate stdout and stderr."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from starlette.requests import Request
from starlette.routing import Route

from agentdouble.sandbox.workbench import bash_driver
from agentdouble.sandbox.workbench.bash_session import SIGNALS, BashCommand, BashSession
from agentdouble.sandbox.workbench.bash_sessions import BashSessions
from agentdouble.sandbox.workbench.processes import shorten
from agentdouble.sandbox.workbench.wire import (
    FailedError,
    Paths,
    RequestBody,
    WorkbenchAnswer,
    post,
    without_body,
)


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("it must not contain NUL characters")
    return text


def _variables(env: dict[str, str | None]) -> dict[str, str | None]:
    for name, value in env.items():
        if not bash_driver.NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a valid variable name")
        _without_nul(value or "")
    return env


Text = Annotated[str, AfterValidator(_without_nul)]
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_without_nul)]
Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]


class Exec(RequestBody):
    """A command; ``timeout`` (seconds) ends the wait, ``hard_timeout`` (seconds) the command."""

    session_id: Name | None = None
    command: Text
    exec_dir: Text | None = None
    env: Annotated[dict[str, str | None], AfterValidator(_variables)] | None = None
    async_mode: bool = False
    timeout: Seconds | None = None
    hard_timeout: Seconds | None = None
    max_output_length: int = Field(50_000, ge=0)


class ReadOutput(RequestBody):
    """A request for the output of a session; offsets are in bytes."""

    session_id: str
    command_id: str | None = None
    offset: int = Field(0, ge=0)
    stderr_offset: int = Field(0, ge=0)
    wait: bool = False
    wait_timeout: Seconds = 30


class Write(RequestBody):
    """Input for the running command."""

    session_id: str
    command_id: str | None = None
    input: str


class Kill(RequestBody):
    """A signal for the running command."""

    session_id: str
    signal: Literal["SIGTERM", "SIGKILL", "SIGINT"] = "SIGTERM"


class Create(RequestBody):
    """A request to create a bash session."""

    session_id: Name | None = None
    exec_dir: Text | None = None


class Bash:
    """The bash sessions of a sandbox; ``memory_limit`` (bytes) applies to each process in them."""

    def __init__(self, paths: Paths, memory_limit: int | None) -> None:
        self._sessions = BashSessions("bash session", paths, memory_limit)

    def routes(self) -> list[Route]:
        """Return the routes below ``/v1/bash``."""
        return [
            post("/v1/bash/exec", Exec, self.exec),
            post("/v1/bash/output", ReadOutput, self.output),
            post("/v1/bash/write", Write, self.write),
            post("/v1/bash/kill", Kill, self.kill),
            without_body("/v1/bash/sessions", self.sessions, "GET"),
            post("/v1/bash/sessions/create", Create, self.create),
            without_body("/v1/bash/sessions/{session_id}/close", self.close, "POST"),
        ]

    async def exec(self, body: Exec) -> WorkbenchAnswer:
        """Run a command; unless it is async, wait for its end, but not longer than its timeout."""
        directory = self._sessions.directory(body.exec_dir)
        session = await self._sessions.get_or_make(body.session_id, directory)
        command = BashCommand(body.command, body.env or {}, directory, body.hard_timeout)
        session.run(command)
        if body.async_mode:
            return _answer(session, command, limit=0)
        with session.interrupting(command):
            await wait_within(command.done.wait(), body.timeout)
        return _answer(session, command, body.max_output_length)

    async def output(self, body: ReadOutput) -> Any:
        """Return the output of a session since the offsets; wait for more if requested."""
        session = self._sessions.find(body.session_id)
        command = _find_command(session, body.command_id)
        if body.wait:
            await wait_within(_news(session, body, command), body.wait_timeout)
        begins: tuple[int, int] = (0, 0)
        ends: tuple[int | None, int | None] = (None, None)
        if body.command_id is not None and command is not None:
            begins, ends = command.begins, command.ends
        stdout, offset = session.stdout.read(max(body.offset, begins[0]), ends[0])
        stderr, stderr_offset = session.stderr.read(max(body.stderr_offset, begins[1]), ends[1])
        return {
            "session_id": session.id,
            "stdout": stdout,
            "stderr": stderr,
            "offset": offset,
            "stderr_offset": stderr_offset,
            "command": None if command is None else _command(command),
        }

    async def write(self, body: Write) -> WorkbenchAnswer:
        """Write to the standard input of the running command."""
        session = self._sessions.find(body.session_id)
        running = session.current
        if running is None or body.command_id not in (None, running.id):
            raise FailedError(f"No such command is running in the bash session {session.id!r}.")
        try:
            await session.write(body.input)
        except ConnectionError:
            raise FailedError(f"The bash session {session.id!r} has ended.") from None
        return WorkbenchAnswer(None, "Input was written")

    async def kill(self, body: Kill) -> WorkbenchAnswer:
        """Send a signal to the running command of a session."""
        self._sessions.find(body.session_id).signal(SIGNALS[body.signal])
        return WorkbenchAnswer(None, f"{body.signal} was sent")

    async def sessions(self, _request: Request) -> Any:
        """Return the bash sessions, oldest first."""
        return [session.to_dict() for session in self._sessions]

    async def create(self, body: Create) -> Any:
        """Create a bash session; leave an existing one unchanged."""
        directory = self._sessions.directory(body.exec_dir)
        return (await self._sessions.get_or_make(body.session_id, directory)).to_dict()

    async def close(self, request: Request) -> WorkbenchAnswer:
        """End a bash session and all processes that it has started."""
        session_id = request.path_params["session_id"]
        await self._sessions.close(session_id)
        return WorkbenchAnswer(None, f"The bash session {session_id!r} is closed")


def _answer(session: BashSession, command: BashCommand, limit: int) -> WorkbenchAnswer:
    """Return the answer to a command; ``limit`` (characters) applies to each of its outputs."""
    stdout, offset = session.stdout.read(command.begins[0], command.ends[0])
    stderr, stderr_offset = session.stderr.read(command.begins[1], command.ends[1])
    data = {
        "session_id": session.id,
        **_command(command),
        "stdout": shorten(stdout, limit),
        "stderr": shorten(stderr, limit),
        "offset": offset,
        "stderr_offset": stderr_offset,
    }
    return WorkbenchAnswer(data, _sentence(command))


def _command(command: BashCommand) -> dict[str, Any]:
    return {
        "command_id": command.id,
        "command": command.text,
        "status": command.status,
        "exit_code": command.exit_code,
    }


def _sentence(command: BashCommand) -> str:
    sentence = {
        "pending": "Command waits for an earlier one",
        "running": "Command is still running",
        "completed": f"Command completed with exit code {command.exit_code}",
        "timed_out": "Command was killed at its hard timeout",
        "killed": "Command was killed",
    }[command.status]
    if command.ended_bash:
        sentence += "; its bash ended with it, and the bash's variables and directory are lost"
    return sentence


def _find_command(session: BashSession, command_id: str | None) -> BashCommand | None:
    if command_id is None:
        return session.current or (session.commands[-1] if session.commands else None)
    for command in session.commands:
        if command.id == command_id:
            return command
    raise FailedError(f"There is no command {command_id!r} in the bash session {session.id!r}.")


async def _news(session: BashSession, body: ReadOutput, command: BashCommand | None) -> None:
    """Wait until there is output after the offsets, or the command is done."""
    while not (command is not None and command.done.is_set()):
        if session.stdout.end > body.offset or session.stderr.end > body.stderr_offset:
            return
        changes = [asyncio.ensure_future(o.changed()) for o in (session.stdout, session.stderr)]
        try:
            await asyncio.wait(changes, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for change in changes:
                change.cancel()


async def wait_within(waiting: Awaitable[Any], timeout_s: float | None) -> None:
    """Wait, at most ``timeout_s`` seconds."""
    try:
        await asyncio.wait_for(waiting, timeout_s)
    except asyncio.TimeoutError:
        return
