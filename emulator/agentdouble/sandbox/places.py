"""Where the processes of sessions run: on this machine, or on other nodes (``nodes``).

``Instances`` asks its places for every new instance. Id, key, deadline, token, log and record of an
instance stay with ``Instances``.
"""

from __future__ import annotations

from typing import Any

from agentdouble.errors import SandboxError, TooManyInstancesError
from agentdouble.processes import capacity
from agentdouble.processes.capacity import SessionLimit
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.kernel_pool import KernelPool
from agentdouble.sandbox.session_process import InstanceKey
from agentdouble.settings import Settings


class Places:
    """The place of the sessions whose processes run on this machine."""

    def __init__(self, settings: Settings) -> None:
        self._limit = capacity.session_limit()
        if settings.max_instances is not None:
            self._limit = SessionLimit(settings.max_instances, None)
        self._kernels = KernelPool(settings)

    async def check_access(self) -> None:
        """Raise SettingsError if sessions would not be confined in their place."""

    async def ready(self) -> None:
        """Return when a session can be placed; raise SandboxError if that takes too long."""

    def check(self, living: int) -> None:
        """Raise SandboxError if there is no place for a session besides those that live."""
        if living >= self._limit.sessions:
            raise TooManyInstancesError(self._limit.sessions, self._limit.resource)
        capacity.check()

    def make(self, key: InstanceKey, **parts: Any) -> Instance:
        """Return a new instance in a free place; ``parts`` are its other arguments."""
        return Instance(key, kernels=self._kernels, **parts)

    def list_nodes(self) -> list[dict[str, Any]]:
        """Return the nodes as JSON-ready data; this machine is none."""
        return []

    def drain(self, name: str, deadline_s: float) -> None:
        """Place no more sessions on a node; end those that still live after ``deadline_s``.

        Raises SandboxError for an unknown name.
        """
        nodes = [node["name"] for node in self.list_nodes()]
        listed = f"the nodes are {', '.join(nodes)}" if nodes else "it has no nodes (serve --nodes)"
        raise SandboxError(
            f"The double has no node {name!r}: {listed}.", "InvalidResource.NotFound", 404
        )

    def start(self) -> None:
        """Look after the places from now on, until ``close``."""

    async def close(self) -> None:
        """Release sockets, directories and processes."""
        await self._kernels.close()
