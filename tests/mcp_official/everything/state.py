"""The server's state: who watches which resource, and who listens for changes."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from mcp.server.session import ServerSession
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.types import JSONRPCMessage


class State:
    """The subscribers of both protocol eras: by ``resources/subscribe``, and on the bus."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self._watchers: dict[str, dict[int, ServerSession]] = defaultdict(dict)

    def watch(self, uri: str, session: ServerSession) -> None:
        """Subscribe a session to a resource."""
        self._watchers[uri][_connection(session)] = session

    def unwatch(self, uri: str, session: ServerSession) -> None:
        """Cancel the subscription."""
        self._watchers[uri].pop(_connection(session), None)

    async def changed(self, uri: str) -> None:
        """Notify every subscriber that a resource has changed."""
        for session in list(self._watchers[uri].values()):
            await session.send_resource_updated(uri)
        await self.bus.publish(ResourceUpdated(uri=uri))


def _connection(session: ServerSession) -> int:
    # each request has a session object of its own, in front of one connection
    connection: Any = session._connection
    return id(connection)


class Events(EventStore):
    """All events in memory, numbered."""

    def __init__(self) -> None:
        self._events: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Store an event and return its number."""
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str:
        """Send the later events of the same stream again."""
        last = int(last_event_id)
        stream_id = self._events[last - 1][0]
        for number, (stream, message) in enumerate(self._events[last:], start=last + 1):
            if stream == stream_id and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream_id
