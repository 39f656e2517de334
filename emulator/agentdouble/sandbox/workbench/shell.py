"""``/v1/shell/exec`` and ``wait``: commands in shells whose output and errors are one stream."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict
from starlette.routing import Route

from agentdouble.sandbox.workbench.bash import Name, Seconds, Text, wait_within
from agentdouble.sandbox.workbench.bash_session import BashCommand, BashSession
from agentdouble.sandbox.workbench.bash_sessions import BashSessions
from agentdouble.sandbox.workbench.output_files import OutputFile
from agentdouble.sandbox.workbench.processes import shorten
from agentdouble.sandbox.workbench.wire import (
    FailedError,
    Paths,
    RequestBody,
    WorkbenchAnswer,
    post,
)

SHOWN_CHARS = 30_000
_ENDED_SHELLS = 32  # whose last command can still be waited for
_STATUS = {
    "pending": "running",
    "running": "running",
    "completed": "completed",
    "timed_out": "hard_timeout",
    "killed": "terminated",
}


def _not_built(seconds: float | None) -> float | None:
    if seconds is not None:
        raise ValueError("no_change_timeout is not implemented: send timeout")
    return seconds


# The platform's own client sends "" for a new shell, and for no directory.
_Absent = BeforeValidator(lambda text: None if text == "" else text)
OptionalName = Annotated[Name | None, _Absent]
OptionalText = Annotated[Text | None, _Absent]


class Exec(RequestBody):
    """A command; ``hard_timeout`` ends it, ``timeout`` ends the wait."""

    model_config = ConfigDict(extra="forbid")

    id: OptionalName = None
    exec_dir: OptionalText = None
    command: Text
    async_mode: bool = False
    timeout: Seconds | None = None
    strict: bool | None = None
    no_change_timeout: Annotated[float | None, AfterValidator(_not_built)] = None
    hard_timeout: Seconds | None = None
    preserve_symlinks: bool = False
    truncate: bool = True


class Wait(RequestBody):
    """A wait for the last command of a shell; the shorter of the two times (seconds) ends it."""

    model_config = ConfigDict(extra="forbid")

    id: Name
    seconds: Seconds | None = None
    max_wait_seconds: Seconds | None = None


@dataclass
class ShellCommand(BashCommand):
    """A command of a shell, its prompt, and the file of its whole output if an answer was cut."""

    prompt: str = ""
    file: OutputFile | None = None


class Shell:
    """The shells of a sandbox; ``memory_limit`` (bytes) applies to each process in them."""

    def __init__(self, paths: Paths, memory_limit: int | None) -> None:
        self._paths = paths
        self._sessions = BashSessions(
            "shell", paths, memory_limit, joined=True, on_forget=self._remember
        )
        self._ended: dict[str, BashSession] = {}

    def routes(self) -> list[Route]:
        """Return the routes below ``/v1/shell``."""
        return [
            post("/v1/shell/exec", Exec, self.exec),
            post("/v1/shell/wait", Wait, self.wait),
        ]

    async def exec(self, body: Exec) -> WorkbenchAnswer:
        """Run a command and return its output; wait as long as the body says."""
        directory = self._sessions.directory(body.exec_dir, strict=bool(body.strict))
        if directory is not None and not body.preserve_symlinks:
            directory = os.path.realpath(directory)  # noqa: ASYNC240
        session = await self._sessions.get_or_make(body.id, directory)
        command = ShellCommand(
            body.command,
            exec_dir=directory,
            hard_timeout_s=body.hard_timeout,
            prompt=f"gem@agentdouble:{session.working_dir} $",
        )
        session.stdout.before_drop = partial(self._save_current, session)
        session.run(command)
        if not body.async_mode:
            with session.interrupting(command):
                await wait_within(command.done.wait(), body.timeout)
        return _answer(self._data(session, command, truncate=body.truncate))

    async def wait(self, body: Wait) -> WorkbenchAnswer:
        """Wait until the last command of a shell is done; return its output, as ``exec`` does."""
        times = [s for s in (body.seconds, body.max_wait_seconds) if s is not None]
        session = self._find(body.id)
        command = session.commands[-1]
        await wait_within(command.done.wait(), min(times, default=None))
        return _answer(self._data(session, command))

    def _find(self, session_id: str) -> BashSession:
        """Return a shell, which may have ended with its last command; raise FailedError."""
        try:
            return self._sessions.find(session_id)
        except FailedError:
            if session_id not in self._ended:
                raise
            return self._ended[session_id]

    def _data(
        self, session: BashSession, command: BashCommand, *, truncate: bool = True
    ) -> dict[str, Any]:
        assert isinstance(command, ShellCommand)
        output, _ = session.stdout.read(command.begins[0], command.ends[0])
        shown = shorten(output, SHOWN_CHARS if truncate else 0)
        is_whole = shown == output and command.begins[0] >= session.stdout.start
        return {
            "session_id": session.id,
            "command": command.text,
            "status": _STATUS[command.status],
            "output": shown,
            "console": [{"ps1": command.prompt, "command": command.text, "output": shown}],
            "exit_code": command.exit_code,
            "full_output_file_path": None if is_whole else self._save(session, command),
        }

    def _save(self, session: BashSession, command: ShellCommand) -> str | None:
        """Write the output of a command to its file; return the file's path if there is room."""
        if command.file is None:
            command.file = OutputFile(self._paths, command.begins[0])
        end = command.ends[0]
        return command.file.save(session.stdout, session.stdout.end if end is None else end)

    def _save_current(self, session: BashSession) -> None:
        """Write the output of the running command to its file before a part of it is dropped."""
        command = session.current
        if isinstance(command, ShellCommand) and command.status == "running":
            self._save(session, command)

    def _remember(self, session: BashSession) -> None:
        """Keep a shell that has ended, for the answer of its last command."""
        self._ended.pop(session.id, None)
        self._ended[session.id] = session
        if len(self._ended) > _ENDED_SHELLS:
            del self._ended[next(iter(self._ended))]


def _answer(data: dict[str, Any]) -> WorkbenchAnswer:
    return WorkbenchAnswer(data, f"Command {data['status']}")
