"""The fork server of a double's runtimes, and the confinement of its processes; Linux only.

The runtimes have their own fork server, without Jupyter in its memory. An instance is confined
like a kernel: it sees the system, its directory, its interpreter and the modules of that
interpreter, all read-only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from agentdouble import threads
from agentdouble.processes.workspace import Workspace
from agentdouble.runtimes.command_line import Command
from agentdouble.runtimes.confining import confinement_of
from agentdouble.runtimes.definition import Definition
from agentdouble.runtimes.named_paths import hidden_from
from agentdouble.runtimes.process import Tree
from agentdouble.settings import Settings

if TYPE_CHECKING:
    from agentdouble.processes.fork_server.client import ForkServer
    from agentdouble.processes.fork_server.confinement import Confinement
    from agentdouble.processes.fork_server.protocol import ForkRequest
    from agentdouble.processes.isolation import Isolation

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
