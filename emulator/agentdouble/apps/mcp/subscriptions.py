"""Notifications of changed resources to the connections that subscribed to them."""

from __future__ import annotations

from typing import Any

import anyio
from mcp import MCPError
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated, ServerEvent
from mcp.types import INVALID_REQUEST

MOST_WATCHED = 1000  # resources of a connection
TELL_WITHIN_S = 2.0  # a client that does not read delays no other


class Changes(InMemorySubscriptionBus):
    """The SDK's bus, which also tells connections that used ``resources/subscribe``."""

    def __init__(self) -> None:
        super().__init__()
        self._watched: dict[Any, set[str]] = {}

    def watch(self, connection: Any, uri: str) -> None:
        """Notify a connection of changes to a resource until it ends; raise MCPError."""
        if connection not in self._watched:
            self._watched[connection] = set()
            connection.exit_stack.callback(self._watched.pop, connection, None)
        watched = self._watched[connection]
        if len(watched) >= MOST_WATCHED and uri not in watched:
            raise MCPError(
                INVALID_REQUEST, f"Too many watched resources (limit {MOST_WATCHED} per session)."
            )
        watched.add(uri)

    def unwatch(self, connection: Any, uri: str) -> None:
        """Stop notifying a connection of changes to a resource."""
        self._watched.get(connection, set()).discard(uri)

    async def publish(self, event: ServerEvent) -> None:
        """Notify all subscribers."""
        await super().publish(event)
        if not isinstance(event, ResourceUpdated):
            return
        async with anyio.create_task_group() as tasks:
            for connection, watched in list(self._watched.items()):
                if event.uri in watched:
                    tasks.start_soon(_tell, connection, event.uri)


async def _tell(connection: Any, uri: str) -> None:
    with anyio.move_on_after(TELL_WITHIN_S):
        await connection.send_resource_updated(uri)
