"""Where the processes of sessions run: on this machine, or on nodes (``nodes.node_placement``)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from agentdouble.errors import SandboxError, TooManyInstancesError
from agentdouble.processes import capacity
from agentdouble.processes.capacity import SessionLimit
from agentdouble.sandbox.kernel_pool import KernelPool
from agentdouble.sandbox.local_processes import LocalProcesses
from agentdouble.sandbox.process_starter import ProcessStarter
from agentdouble.sandbox.session import SandboxSession
from agentdouble.sandbox.session_processes import Processes
from agentdouble.settings import Settings


class Placement(Protocol):
    """Gives each new session its processes: ``LocalPlacement`` or ``NodePlacement``."""

    async def check_access(self) -> None:
        """Raise SettingsError if sessions would not be confined where they run."""

    async def ready(self) -> None:
        """Return when a session can be placed, or when waiting longer would not help."""

    def check(self, living: int) -> None:
        """Raise SandboxError if there is no room for a session besides those that live."""

    def processes_for(self, session: SandboxSession) -> Processes:
        """Return the processes of a new session; start none. Raises the errors of ``check``."""

    def list_nodes(self) -> list[dict[str, Any]]:
        """Return the nodes as JSON-ready data; this machine does not count as one."""

    def drain(self, name: str, deadline_s: float) -> None:
        """Place no more sessions on a node; end those that still live after ``deadline_s``.

        Raises SandboxError for an unknown name.
        """

    def start(self) -> None:
        """Look after the machines from now on, until ``close``."""

    async def close(self) -> None:
        """Release sockets, directories and processes."""


class LocalPlacement:
    """Places all sessions on this machine; see ``Placement`` for its methods."""

    def __init__(self, settings: Settings) -> None:
        self._limit = capacity.session_limit()
        if settings.max_instances is not None:
            self._limit = SessionLimit(settings.max_instances, None)
        self._starter = ProcessStarter(settings)
        self.kernels = KernelPool(self._starter)

    async def check_access(self) -> None:
        """Accept this machine: ``isolation`` says how far sessions are confined here."""

    async def ready(self) -> None:
        """Return at once."""

    def check(self, living: int) -> None:
        if living >= self._limit.sessions:
            raise TooManyInstancesError(self._limit.sessions, self._limit.resource)
        capacity.check()

    def processes_for(self, session: SandboxSession) -> Processes:
        return LocalProcesses(session, self.kernels, self._starter)

    def list_nodes(self) -> list[dict[str, Any]]:
        return []

    def drain(self, name: str, deadline_s: float) -> None:
        raise unknown_node(name, ())

    def start(self) -> None:
        """Do nothing: kernels start when they are needed."""

    async def close(self) -> None:
        self._starter.refuse()
        await self.kernels.close()
        await self._starter.close()


def unknown_node(name: str, nodes: Collection[str]) -> SandboxError:
    """Return the error for a node that is none of these."""
    listed = f"the nodes are {', '.join(nodes)}" if nodes else "it has no nodes (serve --nodes)"
    return SandboxError(
        f"The double has no node {name!r}: {listed}.", "InvalidResource.NotFound", 404
    )
