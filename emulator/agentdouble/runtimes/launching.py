"""Start the processes of instances: forked and confined on Linux, spawned on other systems.

All runtimes of a double share one fork server. Its guardian leaves nothing behind when the
double ends, however it ends. ``process`` has the started processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from agentdouble import threads
from agentdouble.errors import RuntimeStartError
from agentdouble.processes.fork_server import signals
from agentdouble.processes.fork_server.command import with_home
from agentdouble.processes.workspace import Workspace, Workspaces
from agentdouble.runtimes.command_line import (
    OWN,
    Command,
    Interpreter,
    command_of,
    examine,
    inherited,
    interpreter_of,
)
from agentdouble.runtimes.definition import Definition, Program
from agentdouble.runtimes.forking import Forked, Forks
from agentdouble.runtimes.logs import InstanceLog
from agentdouble.runtimes.streams import Conversation, LoggedStreams, Process, Streams
from agentdouble.settings import Settings

_HOME = re.compile(r"^home\s*=\s*(/[^\0\n]*?)\s*$", re.MULTILINE)
_CONFIG = "pyvenv.cfg"
_PARTS = ("bin", "lib", "lib64", "share", "ssl")  # Python's; ~ may be an installation as well
_MOST_LINKS = 40  # as in Linux
_LONGEST_CONFIG = 10_000  # characters


def visible_of(python: Path, program: Program) -> tuple[str, ...]:
    """Return the paths that the instances of a program need of their interpreter.

    These are its environment, if the program may name it, and the installation that the environment
    was made from, wherever it is.
    """
    environment = python.parent.parent
    steps = list(_steps(python))
    bases = [step.parent.parent for step in steps] + _homes(environment)
    shown = [path for base in bases for path in _parts(base)]
    places = [os.path.realpath(path) for path in shown]
    if program.may_show(python) or any(map(Path(os.path.realpath(python)).is_relative_to, places)):
        shown += steps
    if (environment / _CONFIG).is_file() and program.may_show(environment):
        shown.append(environment)
    return tuple(sorted({str(path) for path in shown}))


def _steps(python: Path) -> Iterator[Path]:
    """Yield the path of an interpreter, and the paths to which it leads as a link."""
    for _ in range(_MOST_LINKS):
        yield python
        if not python.is_symlink():
            return
        python = Path(os.path.normpath(python.parent / os.readlink(python)))  # noqa: PTH115


def _homes(environment: Path) -> list[Path]:
    """Return the installation that a virtual environment names."""
    config = environment / _CONFIG
    if not config.is_file():  # a pipe would be waited for
        return []
    with config.open(errors="replace") as file:
        found = _HOME.search(file.read(_LONGEST_CONFIG))
    return [] if found is None else [Path(found[1]).parent]


def _parts(base: Path) -> list[Path]:
    """Return the parts of an installation that lie in it; none if Python would not take it for one.

    A link in a directory of the client's could lead anywhere.
    """
    if not any(base.glob("lib/py*/os.py")):
        return []
    real = os.path.realpath(base)
    found = [base / part for part in _PARTS]
    return [path for path in found if Path(os.path.realpath(path)).is_relative_to(real)]


class SpawnedTree:
    """A process in a session of its own.

    A child that has left the session is still known if it was a child when a signal was sent.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._seen: set[psutil.Process] = set()
        self.pid = process.pid
        self.exited: asyncio.Future[int | None] = asyncio.ensure_future(self._wait())

    def send_signal(self, number: int) -> None:
        """Send a signal to the first process, or SIGKILL to all."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self._seen.update(psutil.Process(self.pid).children(recursive=True))
        if number == signal.SIGKILL:
            self._kill_rest()
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def _wait(self) -> int | None:
        code = await self._process.wait()
        self._kill_rest()
        return code

    def _kill_rest(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signals.send_to_group(self.pid, signal.SIGKILL)
        for process in self._seen:  # psutil checks that the pid was not reused
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


async def spawn(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], streams: Sequence[int]
) -> SpawnedTree:
    """Start a command with descriptors for output, errors and perhaps input; raise OSError."""
    return SpawnedTree(
        await asyncio.create_subprocess_exec(
            *with_home(argv, env["HOME"]),
            cwd=cwd,
            env=dict(env),
            stdin=streams[2] if len(streams) > 2 else subprocess.DEVNULL,
            stdout=streams[0],
            stderr=streams[1],
            start_new_session=True,
        )
    )


def _check_directory(program: Program) -> None:
    """Raise OSError if the directory of a program is missing, or has become a link elsewhere."""
    if not program.directory.is_dir():
        raise OSError(f"there is no directory {program.directory}")
    if not program.may_show(program.directory):
        raise OSError(f"{program.directory} leads out of the directories in runtime_sources")


class Launcher:
    """Starts instances for one double; belongs to one event loop.

    Hosted code finds its double by the ``variables``.
    """

    def __init__(self, settings: Settings, variables: Callable[[], Mapping[str, str]]) -> None:
        self._variables = variables
        self._forks = Forks(settings) if sys.platform == "linux" else None
        self._workspaces: Workspaces | None = None
        self._interpreters: dict[Path, Interpreter] = {}

    def prepare(self) -> None:
        """Start the work that the first start would otherwise wait for."""
        if self._forks is not None:
            self._forks.prepare()

    async def launch(self, definition: Definition, port: int, log: InstanceLog) -> Process:
        """Start a program that is to listen on ``port``, with its output in ``log``.

        Raises RuntimeStartError, with nothing left behind.
        """
        return await self._launch(definition, log, port, None)

    async def converse(
        self, definition: Definition, log: InstanceLog, conversation: Conversation
    ) -> Process:
        """Start a program that reads and writes messages; its errors go to ``log``.

        Other people wrote it, so it gets no variables that point at the double.
        Raises RuntimeStartError, with nothing left behind.
        """
        return await self._launch(definition, log, None, conversation)

    def make_workspace(self) -> Workspace:
        """Make directories for several processes; they are removed when the double ends."""
        self._workspaces = self._workspaces or Workspaces()
        return self._workspaces.make()

    async def _launch(
        self,
        definition: Definition,
        log: InstanceLog,
        port: int | None,
        conversation: Conversation | None,
    ) -> Process:
        try:
            _check_directory(definition.program)
            interpreter = await self._interpreter(definition)
            program = replace(definition.program, python=interpreter_of(definition.program))
            definition = replace(definition, program=program)
            variables = {} if conversation else self._variables()
            command = command_of(definition, interpreter, variables, port)
            streams = conversation or LoggedStreams(log, self.make_workspace())
            return await self._start(definition, command, interpreter.lies_in, streams)
        except OSError as error:
            raise RuntimeStartError(definition.name, str(error)) from error

    async def close(self) -> None:
        """End all remaining processes and remove the files of every instance."""
        if self._forks is not None:
            await self._forks.close()
        if self._workspaces is not None:
            await threads.run_in_thread(self._workspaces.remove)
            self._workspaces = None

    async def _interpreter(self, definition: Definition) -> Interpreter:
        python = interpreter_of(definition.program)
        if python is None:
            return OWN
        if definition.program.sources is not None:
            return Interpreter(python, visible_of(python, definition.program))
        if python not in self._interpreters:
            # without the runtime's variables, which a client of the control plane can change
            env = inherited(replace(definition.program, python=python))
            self._interpreters[python] = await examine(python, env)
        return self._interpreters[python]

    async def _start(
        self,
        definition: Definition,
        command: Command,
        visible: Sequence[str],
        streams: Streams,
    ) -> Process:
        given: list[int] = []
        try:
            await streams.open(given)
            command = command.in_workspace(streams.workspace)
            forked = await self._tree(definition, command, streams.workspace, visible, given)
        except BaseException:
            await streams.abandon()
            raise
        finally:
            for descriptor in given:
                os.close(descriptor)
        return Process(forked.tree, streams, forked.hidden)

    async def _tree(
        self,
        definition: Definition,
        command: Command,
        workspace: Workspace,
        visible: Sequence[str],
        streams: Sequence[int],
    ) -> Forked:
        if self._forks is not None:
            return await self._forks.fork(definition, command, workspace, visible, streams)
        return Forked(await spawn(command.argv, command.cwd, command.env, streams))
