"""Requests of the stateless era: one process answers those of all clients.

Such a request says all that the server needs, so clients can share a process, as they share a
server behind HTTP: it starts once, and what one client changes is what another client is told of.
Each request gets an id and a progress token of its own on the way, so that whatever comes back
finds its client.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from mcp.shared.inbound import x_mcp_header_map
from mcp.types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION

from agentdouble.errors import BackendLostError
from agentdouble.mcp_services.stdio.server import (
    PAUSE_S,
    Message,
    Server,
    failed,
    is_request,
    is_response,
    progress_token,
    told,
)

LISTEN = "subscriptions/listen"
_LOG_LEVEL = "io.modelcontextprotocol/logLevel"
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
_MOST_SCHEMAS = 1000
_UNREAD = 256  # messages that may wait for a client
_UNREAD_S = 5.0  # how long a server waits for a client that does not read


@dataclass(eq=False)
class _Asked:
    """A request in flight, and what has come for its client."""

    request: Message
    unread: asyncio.Queue[Message] = field(default_factory=lambda: asyncio.Queue(_UNREAD))

    @property
    def wants_log(self) -> bool:
        return _meta(self.request.get("params")).get(_LOG_LEVEL) is not None

    def numbered(self, number: int) -> Message:
        """Return the request with a number as its id and progress token."""
        sent = {**self.request, "id": number}
        if progress_token(self.request) is not None:
            params = self.request["params"]
            sent["params"] = {**params, "_meta": {**params["_meta"], "progressToken": number}}
        return sent

    def restored(self, number: int, message: Message) -> Message:
        """Return a message with the client's own id and token in place of the number."""
        found = {**message}
        if "id" in found:
            found["id"] = self.request["id"]
        for part in ("params", "result"):
            meta = _meta(found.get(part))
            if str(meta.get(_SUBSCRIPTION)) == str(number):
                own = {**meta, _SUBSCRIPTION: self.request["id"]}
                found[part] = {**found[part], "_meta": own}
        if message.get("method") == "notifications/progress":
            own_token = progress_token(self.request)
            found["params"] = {**found["params"], "progressToken": own_token}
        return found


class SharedServer:
    """A process that answers requests of the stateless era. Belongs to one event loop."""

    def __init__(self, service: str, server: Server, timeout_s: float) -> None:
        self.used_at = time.monotonic()
        self.schemas: dict[str, Any] = {}  # of listed tools whose arguments are headers, too
        self._service = service
        self._server = server
        self._timeout_s = timeout_s
        self._numbers = itertools.count(1)
        self._asked: dict[int, _Asked] = {}
        self._refused = self._released = False
        server.receive = self._receive
        server.lost.add_done_callback(lambda _lost: self._fail_all())

    @property
    def idle(self) -> bool:
        """Whether no request is in flight."""
        return not self._asked

    @property
    def lost(self) -> bool:
        """Whether the process has ended, or is a session's."""
        return self._released or self._server.lost.done()

    def release(self) -> Server | None:
        """Return the process for a session, if all that it was asked is which era it knows.

        A client of both eras asks that first. A server of the handshake era refuses, and then the
        client opens a session.
        """
        if not self._refused or not self.idle or self.lost:
            return None
        self._released = True
        return self._server

    async def end(self) -> None:
        """End the process."""
        await self._server.end()

    async def ask(self, request: Message) -> AsyncGenerator[Message, None]:
        """Yield the notifications for a request, then its response.

        If the generator is closed earlier, the server is told that the request is cancelled.
        """
        if self._released:
            yield failed(
                request["id"], told(self._service, "knows sessions only"), METHOD_NOT_FOUND
            )
            return
        number = next(self._numbers)
        asked = self._asked[number] = _Asked(request)
        try:
            await self._server.send(asked.numbered(number))
            async for message in self._answers(number, asked):
                yield message
        except BackendLostError as error:
            yield failed(request["id"], str(error))
        finally:
            self.used_at = time.monotonic()
            if self._asked.pop(number, None) is not None:
                self._server.cancel(number, "the client has gone")

    async def _answers(self, number: int, asked: _Asked) -> AsyncGenerator[Message, None]:
        timeout = None if asked.request["method"] == LISTEN else self._timeout_s
        while True:
            try:
                message = await asyncio.wait_for(asked.unread.get(), timeout)
            except asyncio.TimeoutError:
                why = f"has not answered for {timeout:g} s"
                yield failed(asked.request["id"], told(self._service, why))
                return
            yield message
            if is_response(message):
                self._asked.pop(number, None)
                return

    async def _receive(self, message: Message) -> None:
        if is_request(message):  # the era has none; what it asks for is in its results
            refusal = failed(message["id"], "A server sends no requests.", METHOD_NOT_FOUND)
            await self._server.send(refusal)
            return
        number = self._number_of(message)
        asked = None if number is None else self._asked.get(number)
        if number is None or asked is None:
            if not is_response(message):
                self._server.note_foreign(message)
            await asyncio.sleep(PAUSE_S)
            return
        if is_response(message):
            self._learn(asked.request["method"], message)
        await self._put(number, asked, asked.restored(number, message))

    def _learn(self, method: str, response: Message) -> None:
        error = response.get("error")
        code = error.get("code") if isinstance(error, dict) else None
        refused = code is not None and code != UNSUPPORTED_PROTOCOL_VERSION
        self._refused = refused and method == "server/discover"
        result = response.get("result")
        tools = result.get("tools") if method == "tools/list" and isinstance(result, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            schema = tool.get("inputSchema") if isinstance(tool, dict) else None
            if len(self.schemas) < _MOST_SCHEMAS and x_mcp_header_map(schema):
                self.schemas[str(tool.get("name"))] = schema

    def _number_of(self, message: Message) -> int | None:
        """Return the number of the request to which a message belongs, or None."""
        if is_response(message):
            number = message.get("id")
        elif message["method"] == "notifications/progress":
            number = progress_token(message)
        else:
            number = _meta(message.get("params")).get(_SUBSCRIPTION) or self._only_one()
        return int(str(number)) if str(number).isdecimal() else None

    def _only_one(self) -> int | None:
        """Return the request that a message means which says nothing of requests: log messages.

        A request asks for them, or gets none. If two do at a time, either could be meant, and
        nobody is told what may be another client's.
        """
        plain = {n: one for n, one in self._asked.items() if one.request["method"] != LISTEN}
        listening = [number for number, one in plain.items() if one.wants_log] or [*plain]
        return listening[0] if len(listening) == 1 else None

    async def _put(self, number: int, asked: _Asked, message: Message) -> None:
        """Hand a message to a client; give the client up if it does not read for long."""
        if not asked.unread.full():
            asked.unread.put_nowait(message)
            return
        try:
            await asyncio.wait_for(asked.unread.put(message), _UNREAD_S)
        except asyncio.TimeoutError:
            self._asked.pop(number, None)
            self._server.cancel(number, "the client does not read")
            self._fail(asked, "was not read by the client")

    def _fail(self, asked: _Asked, why: str) -> None:
        if asked.unread.full():
            asked.unread.get_nowait()
        asked.unread.put_nowait(failed(asked.request["id"], told(self._service, why)))

    def _fail_all(self) -> None:
        for asked in self._asked.values():
            self._fail(asked, self._server.lost.result())


def _meta(part: Any) -> dict[str, Any]:
    meta = part.get("_meta") if isinstance(part, dict) else None
    return meta if isinstance(meta, dict) else {}
