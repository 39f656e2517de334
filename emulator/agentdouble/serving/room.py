"""Which connections a server closes: those that are too late, and one if there are too many."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress
from typing import Protocol

from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

MOST = 10_000
LOOK_S = 1.0  # between two looks for connections that are late


class Leaving(Protocol):
    """A connection that can be closed to make room, or because its client is late."""

    loop: asyncio.AbstractEventLoop

    def give_way(self) -> None:
        """Close at once."""

    def end_if_late(self, now: float) -> None:
        """Close if the client should have sent more by this time of the loop."""


class Room:
    """The connections that wait for their clients to send, the longest silent first."""

    def __init__(self) -> None:
        self._silent: OrderedDict[Leaving, None] = OrderedDict()
        self._looks = False

    def listen_to(self, connection: Leaving) -> None:
        """Note that the server waits for this client to send."""
        self._silent[connection] = None
        self._silent.move_to_end(connection)
        if not self._looks:
            self._look_later(connection.loop)

    def hear(self, connection: Leaving) -> None:
        """Note that a client that the server waits for has sent data."""
        if connection in self._silent:
            self._silent.move_to_end(connection)

    def forget(self, connection: Leaving) -> None:
        """Note that a client waits for its answer, or has disconnected."""
        self._silent.pop(connection, None)

    def has_place(self, count: int) -> bool:
        """Return whether there is a place for the last of ``count`` connections.

        If there is no free place, close the connection that has been silent longest.
        """
        if count <= limit():
            return True
        if not self._silent:
            return False
        self._silent.popitem(last=False)[0].give_way()
        return True

    def _look_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._looks = bool(self._silent)
        if self._looks:  # one timer for all: a timer for each would cost every request
            loop.call_later(LOOK_S, self._look, loop, loop.time() + LOOK_S)

    def _look(self, loop: asyncio.AbstractEventLoop, planned: float) -> None:
        now = loop.time()
        if now < planned + LOOK_S:  # else the loop was held up, and there may be unread data
            for connection in list(self._silent):
                connection.end_if_late(now)
        self._look_later(loop)


def limit() -> int:
    """Return the allowed number of connections: half of the descriptors are for sessions."""
    with suppress(ImportError):  # not on Windows
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY:
            return min(MOST, soft // 2)
    return MOST


async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request on a connection for which there is no place."""
    text = (
        f"Too many connections: {limit()} are open, none of them idle. Close some, or raise the"
        " limit of open files (ulimit -n).\n"
    )
    headers = {"connection": "close", "retry-after": "1"}
    await PlainTextResponse(text, 503, headers)(scope, receive, send)
