"""What the server remembers: who watches which resource, and who listens for changes."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated


class State:
    """The subscribers of both eras: by ``resources/subscribe``, and on the bus."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self._watchers: dict[str, dict[int, ServerSession]] = defaultdict(dict)

    def watch(self, uri: str, session: ServerSession) -> None:
        """Remember a session that wants to hear of a resource."""
        self._watchers[uri][_connection(session)] = session

    def unwatch(self, uri: str, session: ServerSession) -> None:
        """Forget it."""
        self._watchers[uri].pop(_connection(session), None)

    async def changed(self, uri: str) -> None:
        """Tell everybody who asked for it that a resource has changed."""
        for session in list(self._watchers[uri].values()):
            await session.send_resource_updated(uri)
        await self.bus.publish(ResourceUpdated(uri=uri))


def _connection(session: ServerSession) -> int:
    # each request has a session object of its own, in front of one connection
    connection: Any = session._connection
    return id(connection)
