"""The fork server of a double's runtimes, and the confinement of its processes; Linux only.

The runtimes have their own fork server, without Jupyter in its memory. An instance is confined
like a kernel: it sees the system, its directory, its interpreter and the modules of that
interpreter, all read-only.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentdouble import threads
from agentdouble.processes.workspace import Workspace
from agentdouble.runtimes.command_line import Command, hidden_from
from agentdouble.runtimes.definition import Definition, Program
from agentdouble.runtimes.streams import Tree
from agentdouble.settings import Settings

if TYPE_CHECKING:
    from agentdouble.processes.fork_server.client import ForkServer
    from agentdouble.processes.fork_server.confinement import Confinement
    from agentdouble.processes.fork_server.protocol import ForkRequest
    from agentdouble.processes.isolation import Isolation

_CONFIGURATION = "/etc"
_FOR_ALL = stat.S_IROTH | stat.S_IXOTH


def confinement_of(
    found: Isolation,
    workspace: Workspace,
    program: Program,
    visible: Iterable[str],
    process_limit: int,
) -> Confinement | None:
    """Return the tightest confinement in which a program can be read; raise OSError."""
    shown = (str(program.directory), *visible)
    confinement = found.confinement_for(
        workspace,
        workspace.make_run(),
        visible=shown,
        process_limit=process_limit,
    )
    if confinement is not None and found.offers("files"):
        _check_can_be_shown(shown, confinement.run)
    closed = _closed_to_others(program)
    if confinement is None or confinement.uid is None or closed is None:
        return confinement
    if not (found.offers("files") and found.offers("landlock")):
        raise PermissionError(
            f"{closed} is closed to other users, and the runtime would be one: open it "
            f"(chmod -R o+rX {program.directory}), or set isolation = 'none'"
        )
    return _as_owner_of(program.directory, confinement, workspace)


def _check_can_be_shown(shown: Iterable[str], run: str) -> None:
    """Raise OSError for a directory that is never shown, because it has the files of instances."""
    for path in shown:
        if path != "/" and Path(run).is_relative_to(os.path.realpath(path)):
            raise OSError(
                f"isolation cannot show {path}, because the double's temporary files lie in it: "
                "set TMPDIR to a directory elsewhere, or move the runtime's"
            )


def _closed_to_others(program: Program) -> Path | None:
    """Return the first of the program's paths that the instance's own user could not read."""
    for path in (program.directory, *_begun_with(program)):
        mode = path.stat().st_mode
        wanted = _FOR_ALL if stat.S_ISDIR(mode) else stat.S_IROTH
        if mode & wanted != wanted:
            return path
    return None


def _begun_with(program: Program) -> list[Path]:
    """Return the existing files that a program names, as far as it may name them.

    If it could name any, one that is closed would choose the user that it runs as.
    """
    name = (program.application or "").partition(":")[0]
    words = [name, *program.command]
    if name and not name.endswith(".py"):
        place = name.replace(".", "/")
        words += [f"{place}.py", f"{place}/__init__.py"]
    found = (program.directory / one for one in words if one)
    named = (path for path in found if os.path.isfile(path))  # noqa: PTH113 (no error for a NUL)
    return [path for path in named if program.may_show(path)]


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
            with suppress(FileNotFoundError, PermissionError):  # removed, or nobody's here
                found = entry.stat(follow_symlinks=False)
                if found.st_uid == owner and not found.st_mode & stat.S_IROTH:
                    yield entry.path
                elif stat.S_ISDIR(found.st_mode):
                    yield from _closed_below(entry.path, owner)


_FOR_FORKS = (
    "agentdouble.processes.fork_server.client",
    "agentdouble.processes.fork_server.confinement",
    "agentdouble.processes.isolation",
)
_LARGEST = 128 * 1024  # bytes; the limit of Linux for a single argument


@dataclass(frozen=True)
class Forked:
    """A started process tree.

    ``hidden`` are paths that the command names, but that the instance does not see.
    """

    tree: Tree
    hidden: Sequence[str] = ()


class Forks:
    """Forks instances for one double; belongs to one event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._server: ForkServer | None = None
        self._isolation: asyncio.Future[Isolation] | None = None
        self._preparing: asyncio.Task[None] | None = None

    def prepare(self) -> None:
        """Start the work that the first fork would otherwise wait for."""
        self._preparing = self._preparing or asyncio.ensure_future(self._prepare())

    async def fork(
        self,
        definition: Definition,
        command: Command,
        workspace: Workspace,
        visible: Iterable[str],
        streams: Sequence[int],
    ) -> Forked:
        """Fork a command into its confinement, with standard ``streams``; raise OSError.

        The command may read ``visible`` in addition to its directory and the system.
        """
        await threads.import_in_thread(*_FOR_FORKS)
        from agentdouble.processes.fork_server.client import ForkServerGoneError

        shown = (*visible, *self._settings.visible_paths, *command.needs)
        for last_try in (False, True):
            server = self._get_going()
            confinement = await self._confinement(definition, workspace, shown)
            request = _request(command, workspace, confinement)
            _check_size(request)
            try:
                tree = await server.fork(request, *streams)
                hidden = _hidden(definition, command, confinement)
                return Forked(tree, hidden)
            except ForkServerGoneError as error:  # it died; the next try starts another
                if last_try:
                    raise OSError("the double's fork server has ended") from error
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """End the fork server and all its processes."""
        if self._preparing is not None:
            await asyncio.wait({self._preparing})
        if self._isolation is not None:
            await asyncio.wait({self._isolation})
        if self._server is not None:
            await self._server.stop()
            self._server = None

    async def _prepare(self) -> None:
        await threads.import_in_thread(*_FOR_FORKS)
        self._get_going()

    def _get_going(self) -> ForkServer:
        """Return the fork server, started if need be; also begin to examine the machine."""
        from agentdouble.processes import isolation
        from agentdouble.processes.fork_server.client import ForkServer

        if self._server is None or self._server.gone.done():
            self._server = ForkServer(kind="commands")
        if self._settings.isolation != "none" and isolation.is_unknown(self._isolation):
            self._isolation = asyncio.ensure_future(asyncio.to_thread(isolation.find_out))
        return self._server

    async def _confinement(
        self, definition: Definition, workspace: Workspace, visible: Iterable[str]
    ) -> Confinement | None:

        if self._isolation is None:
            return None
        found = await asyncio.shield(self._isolation)  # other starts wait for it, too
        limit = self._settings.process_limit
        return confinement_of(found, workspace, definition.program, visible, limit)


def _request(
    command: Command, workspace: Workspace, confinement: Confinement | None
) -> ForkRequest:
    from agentdouble.processes.fork_server.protocol import ForkRequest

    return ForkRequest(
        connection_file="",
        cwd=str(workspace.home),
        env=command.env,
        kernel="command",
        config={"Command": {"argv": list(command.argv), "cwd": str(command.cwd)}},
        limits={},  # usage is measured: many programs reserve far more than they use
        confinement=None if confinement is None else asdict(confinement),
        outputs=True,
    )


def _hidden(
    definition: Definition, command: Command, confinement: Confinement | None
) -> Sequence[str]:
    from agentdouble.processes.fork_server import view

    if confinement is None:
        return ()
    shown = [*view.readable(confinement.visible, confinement.run), "/proc", "/dev"]
    path = definition.environment.get("PATH", "")
    return hidden_from(command.argv, definition.program, path, shown)


def _check_size(request: ForkRequest) -> None:
    """Raise OSError for a request that is too large for any system, before it is sent."""
    from agentdouble.processes.fork_server.protocol import encode

    if len(encode(request)) > _LARGEST:
        raise OSError(f"its command line and environment are more than {_LARGEST // 1024} KiB")
