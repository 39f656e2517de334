"""Start the processes of instances: forked and confined on Linux, spawned on other systems.

All runtimes of a double share one fork server, without Jupyter in its memory. Its guardian leaves
nothing behind when the double ends, however it ends. An instance is confined like a kernel: it sees
the system, its directory, its interpreter and the modules of that interpreter, all read-only.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentdouble.core import environment, threads
from agentdouble.errors import RuntimeStartError
from agentdouble.processes.fork_server.client import ForkServerGoneError
from agentdouble.processes.fork_server.command import with_home
from agentdouble.processes.fork_server.protocol import ForkRequest, encode
from agentdouble.processes.launcher import Launcher, StartedProcess, retried
from agentdouble.processes.spawned_process import spawn
from agentdouble.processes.workspace import Workspace, Workspaces
from agentdouble.runtimes.definition import Definition
from agentdouble.runtimes.logs import InstanceLog
from agentdouble.runtimes.streams import Conversation, LoggedStreams, Process, Streams
from agentdouble.settings import Settings

if TYPE_CHECKING:
    from agentdouble.processes.fork_server.confinement import Confinement
    from agentdouble.processes.isolation import Isolation

HOSTING = Path(__file__).with_name("runner") / "hosting.py"
_INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
_PORT = re.compile(r"\$(?:PORT\b|\{PORT\})")
_CONFIGURATION = "/etc"
_FOR_ALL = stat.S_IROTH | stat.S_IXOTH
_LARGEST = 128 * 1024  # bytes; the limit of Linux for a single argument


@dataclass(frozen=True)
class LaunchCommand:
    """A command that is to be executed; its instance has to read the paths in ``needs``."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    needs: tuple[str, ...] = ()


def command_of(
    definition: Definition, variables: Mapping[str, str], workspace: Workspace, port: int | None
) -> LaunchCommand:
    """Return the command that an instance executes; without a ``port`` it does not listen.

    ``variables`` tell the instance where the double and its model are. The runtime's own variables
    override them, and a ``.env`` file in its directory overrides those of the model. Nothing of the
    double's environment that is secret is passed on. If the double finds its modules by PYTHONPATH,
    a program of the same Python gets it, too.
    """
    python = definition.python or Path(sys.executable)
    names = (*_INHERITED, *(() if definition.python else ("PYTHONPATH",)))
    inherited = {name: os.environ[name] for name in names if name in os.environ}
    given = {**inherited, **definition.environment}
    own = (*definition.environment, *_in_file(definition.directory / ".env"))
    env = {
        **environment.besides(variables, own),
        "PYTHONUNBUFFERED": "1",  # otherwise output reaches the log too late
        **given,
        "PATH": os.pathsep.join((str(python.parent), given.get("PATH", os.defpath))),
        "HOME": str(workspace.home),
        "TMPDIR": str(workspace.tmp),
    }
    if (python.parent.parent / "pyvenv.cfg").exists():
        env["VIRTUAL_ENV"] = str(python.parent.parent)
    argv: tuple[str, ...] = definition.command
    if definition.application is not None:
        argv = (str(python), str(HOSTING), definition.application)
    if port is not None:
        env["PORT"] = str(port)
        argv = tuple(_PORT.sub(str(port), argument) for argument in argv)
    needs = [*_needs_of(definition, argv[0]), variables.get(environment.CA_FILE)]
    return LaunchCommand(argv, definition.directory, env, tuple(path for path in needs if path))


def _in_file(path: Path) -> Iterable[str]:
    """Return the names in a ``.env`` file, which its application reads itself."""
    if not path.is_file():
        return ()
    from dotenv import dotenv_values  # slow: 20 ms

    try:
        return dotenv_values(path).keys()
    except (OSError, ValueError):  # the application reports it
        return ()


def _needs_of(definition: Definition, word: str) -> Iterator[str]:
    """Yield the file of a command's first word and the environment of its interpreter.

    A name is one of the double's PATH, whose programs every runtime may run. Whatever else the
    definition names must be below its sources.
    """
    if "/" not in word:
        scripts = Path(sys.executable).parent
        path = os.pathsep.join((str(scripts), os.environ.get("PATH", os.defpath)))
        yield shutil.which(word, path=path) or ""
    named = [definition.directory / word] if "/" in word else []
    if definition.python is not None:
        real = Path(os.path.realpath(definition.python))
        named += [definition.python.parent.parent, real.parent.parent]
    yield from (str(path) for path in named if definition.may_show(path) and path != path.parent)


class InstanceLauncher:
    """Starts instances for one double; belongs to one event loop.

    Hosted code finds its double by the ``variables``.
    """

    def __init__(self, settings: Settings, variables: Callable[[], Mapping[str, str]]) -> None:
        self._settings = settings
        self._variables = variables
        self._launcher = Launcher(
            "commands", forks=sys.platform == "linux", isolates=settings.isolation != "none"
        )
        self._workspaces: Workspaces | None = None

    def prepare(self) -> None:
        """Start the work that the first start would otherwise wait for."""
        with contextlib.suppress(OSError):  # the first start reports it
            self._launcher.begin()

    async def launch(self, definition: Definition, port: int, log: InstanceLog) -> Process:
        """Start a program that is to listen on ``port``, with its output in ``log``.

        Raises RuntimeStartError, with nothing left behind.
        """
        streams = LoggedStreams(log, self.make_workspace())
        return await self._launch(definition, streams, self._variables(), port)

    async def converse(self, definition: Definition, conversation: Conversation) -> Process:
        """Start a program that reads and writes messages.

        Other people wrote it, so it gets no variables that point at the double.
        Raises RuntimeStartError, with nothing left behind.
        """
        return await self._launch(definition, conversation, {}, None)

    def make_workspace(self) -> Workspace:
        """Make directories for several processes; they are removed when the double ends."""
        self._workspaces = self._workspaces or Workspaces()
        return self._workspaces.make()

    async def close(self) -> None:
        """End all remaining processes and remove the files of every instance."""
        self._launcher.close()
        await self._launcher.stop()
        if self._workspaces is not None:
            await threads.run_in_thread(self._workspaces.remove)
            self._workspaces = None

    async def _launch(
        self,
        definition: Definition,
        streams: Streams,
        variables: Mapping[str, str],
        port: int | None,
    ) -> Process:
        descriptors: list[int] = []
        try:
            if not definition.directory.is_dir():
                raise OSError(f"there is no directory {definition.directory}")
            if not definition.may_show(definition.directory):
                where = f"{definition.directory} leads out of the directories in runtime_sources"
                raise OSError(where)
            command = command_of(definition, variables, streams.workspace, port)
            await streams.open(descriptors)
            process = await retried(lambda: self._start(command, streams.workspace, descriptors))
        except BaseException as error:
            await streams.abandon()
            if isinstance(error, ForkServerGoneError):
                reason = "the double's fork server has ended"
                raise RuntimeStartError(definition.name, reason) from error
            if isinstance(error, OSError):
                raise RuntimeStartError(definition.name, str(error)) from error
            raise
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return Process(process, streams)

    async def _start(
        self, command: LaunchCommand, workspace: Workspace, streams: Sequence[int]
    ) -> StartedProcess:
        """Start a command with standard ``streams``: output, errors and perhaps input.

        Raises OSError and ForkServerGoneError.
        """
        self._launcher.begin()
        server = self._launcher.server
        if server is None:
            return await spawn(
                *(with_home(command.argv, command.env["HOME"]), command.cwd, command.env),
                stdin=streams[2] if len(streams) > 2 else subprocess.DEVNULL,
                stdout=streams[0],
                stderr=streams[1],
            )
        confinement = await self._confinement(workspace, command)
        request = ForkRequest(
            connection_file="",
            cwd=str(workspace.home),
            env=command.env,
            kernel="command",
            config={"Command": {"argv": list(command.argv), "cwd": str(command.cwd)}},
            limits={},  # usage is measured: many programs reserve far more than they use
            confinement=None if confinement is None else asdict(confinement),
            outputs=True,
        )
        if len(encode(request)) > _LARGEST:
            kib = _LARGEST // 1024
            raise OSError(f"its command line and environment are more than {kib} KiB")
        return await server.fork(request, *streams)

    async def _confinement(
        self, workspace: Workspace, command: LaunchCommand
    ) -> Confinement | None:
        isolation = await self._launcher.isolation()
        if isolation is None:
            return None
        visible = (str(command.cwd), *command.needs, *self._settings.visible_paths)
        word = command.argv[0]
        found = word if "/" in word else shutil.which(word, path=command.env["PATH"])
        program = command.cwd / (found or "")
        return confinement_of(
            isolation, workspace, command.cwd, program, visible, self._settings.process_limit
        )


def confinement_of(
    isolation: Isolation,
    workspace: Workspace,
    directory: Path,
    program: Path,
    visible: tuple[str, ...],
    process_limit: int,
) -> Confinement | None:
    """Return the tightest confinement in which a program can run in its directory; raise OSError."""
    run = workspace.make_run()
    confinement = isolation.confinement_for(
        workspace, run, visible=visible, process_limit=process_limit
    )
    if confinement is not None and isolation.offers("files"):
        for path in visible:
            if path != "/" and run.is_relative_to(os.path.realpath(path)):
                raise OSError(
                    f"isolation cannot show {path}, because the double's temporary files lie in it: "
                    "set TMPDIR to a directory elsewhere, or move the runtime's"
                )
    if confinement is None or confinement.uid is None:
        return confinement
    readable = directory.stat().st_mode & _FOR_ALL == _FOR_ALL
    if readable and isolation.offers("files"):
        return confinement
    if isolation.offers("files") and isolation.offers("landlock"):
        return _as_owner_of(directory, confinement, workspace)
    closed = _closed_above([directory, program]) if readable else directory
    if closed is None:
        return confinement
    change = f"chmod {'o+x' if readable else '-R o+rX'} {closed}"
    raise PermissionError(
        f"{closed} is closed to other users, and the runtime would be one: open it ({change}), "
        "or set isolation = 'none'"
    )


def _closed_above(paths: Iterable[Path]) -> Path | None:
    """Return the outermost directory on the way to a path that other users cannot pass."""
    for path in paths:
        for directory in reversed(Path(os.path.realpath(path)).parents):
            if directory.exists() and not directory.stat().st_mode & stat.S_IXOTH:
                return directory
    return None


def _as_owner_of(directory: Path, confinement: Confinement, workspace: Workspace) -> Confinement:
    """Return a confinement that runs as the owner of the files, without the owner's rights.

    Namespaces and Landlock confine the instance, as they confine the runtimes of an ordinary user's
    double. There is no process limit, because it would count the owner's other processes, too. The
    owner's closed files in /etc look empty: those of root include the passwords.
    """
    owner = directory.stat().st_uid
    for place in (workspace.home, workspace.tmp):
        os.chown(place, owner, owner)
    masked = tuple(_closed_below(_CONFIGURATION, owner))
    return replace(confinement, uid=owner, process_limit=None, masked=masked)


def _closed_below(directory: str, owner: int) -> Iterator[str]:
    """Yield the outermost files and directories of an owner that others cannot read."""
    with os.scandir(directory) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError, PermissionError):  # removed meanwhile
                status = entry.stat(follow_symlinks=False)
                if status.st_uid == owner and not status.st_mode & stat.S_IROTH:
                    yield entry.path
                elif stat.S_ISDIR(status.st_mode):
                    yield from _closed_below(entry.path, owner)
