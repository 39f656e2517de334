"""``/v1/shell/exec``: commands in shells whose output and errors are one stream."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator
from starlette.routing import Route

from agentdouble.sandbox.workbench.bash import Name, Seconds, Text, wait_within
from agentdouble.sandbox.workbench.bash_session import BashCommand
from agentdouble.sandbox.workbench.bash_sessions import BashSessions
from agentdouble.sandbox.workbench.processes import shorten
from agentdouble.sandbox.workbench.wire import Paths, RequestBody, WorkbenchAnswer, post

SHOWN_CHARS = 30_000
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

    id: OptionalName = None
    exec_dir: OptionalText = None
    command: Text
    async_mode: bool = False
    timeout: Seconds | None = None
    strict: bool | None = None
    no_change_timeout: Annotated[float | None, AfterValidator(_not_built)] = None
    hard_timeout: Seconds | None = None
    truncate: bool = True


class Shell:
    """The shells of a sandbox; ``memory_limit`` (bytes) applies to each process in them."""

    def __init__(self, paths: Paths, memory_limit: int | None) -> None:
        self._sessions = BashSessions("shell", paths, memory_limit, joined=True)

    def routes(self) -> list[Route]:
        """Return the routes below ``/v1/shell``."""
        return [post("/v1/shell/exec", Exec, self.exec)]

    async def exec(self, body: Exec) -> WorkbenchAnswer:
        """Run a command and return its output; wait as long as the body says."""
        directory = self._sessions.directory(body.exec_dir, strict=bool(body.strict))
        session = await self._sessions.get_or_make(body.id, directory)
        command = BashCommand(body.command, {}, directory, body.hard_timeout)
        prompt = f"gem@agentdouble:{session.working_dir} $"
        session.run(command)
        if not body.async_mode:
            with session.interrupting(command):
                await wait_within(command.done.wait(), body.timeout)
        status = _STATUS[command.status]
        output, _ = session.stdout.read(command.begins[0], command.ends[0])
        output = shorten(output, SHOWN_CHARS if body.truncate else 0)
        data = {
            "session_id": session.id,
            "command": command.text,
            "status": status,
            "output": output,
            "console": [{"ps1": prompt, "command": command.text, "output": output}],
            "exit_code": command.exit_code,
        }
        return WorkbenchAnswer(data, f"Command {status}")
