"""``/v1/shell/exec``: commands in shells on a terminal."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import BeforeValidator
from starlette.routing import Route

from agentdouble.sandbox.workbench.bash import Name, Seconds, Text
from agentdouble.sandbox.workbench.bash_session import Command
from agentdouble.sandbox.workbench.keeper import BashSessions
from agentdouble.sandbox.workbench.output import shorten
from agentdouble.sandbox.workbench.paths import Paths
from agentdouble.sandbox.workbench.shell_session import ShellSession
from agentdouble.sandbox.workbench.wire import Answer, RequestBody, cancellable

SHOWN_CHARS = 30_000
_STATUS = {
    "pending": "running",
    "running": "running",
    "completed": "completed",
    "timed_out": "hard_timeout",
    "killed": "terminated",
}

# The platform's own client sends "" for a new shell, and for no directory.
_Absent = BeforeValidator(lambda text: None if text == "" else text)
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


class Shell:
    """The shells of a sandbox; ``memory_limit`` (bytes) applies to each process in them."""

    def __init__(self, paths: Paths, memory_limit: int | None) -> None:
        self._sessions = BashSessions("shell", ShellSession, paths, memory_limit)

    def routes(self) -> list[Route]:
        """Return the routes below ``/v1/shell``."""
        return [
            cancellable("/v1/shell/exec", Exec, self.exec),
        ]

    async def exec(self, body: Exec) -> Answer:
        """Run a command and return the terminal's output; wait as long as the body says."""
        directory = self._sessions.directory(body.exec_dir, strict=bool(body.strict))
        session = await self._sessions.get_or_make(body.id, directory)
        command = Command(body.command, {}, directory, body.hard_timeout)
        prompt = session.prompt
        session.run(command)
        with session.interrupting(command):
            changing = body.async_mode or await _settled(
                session, command, body.timeout, body.no_change_timeout
            )
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
