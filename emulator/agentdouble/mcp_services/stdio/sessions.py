"""A session of the handshake era: a client, and a process of its own.

A server on standard streams has one client. It remembers what the client can do, and asks it for
input, models and roots without saying which client it asks. So clients never share a process. The
SDK's transport speaks HTTP with the client; messages pass through as they are.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

import anyio
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError
from starlette.types import Message as Event
from starlette.types import Receive, Scope, Send

from agentdouble.errors import BackendLostError
from agentdouble.mcp_services.stdio.deadlines import Deadlines
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

_WAITING = 64  # messages for a client that does not listen yet; the oldest is forgotten first
_LAST_ANSWERS_S = 2.0


class Session:
    """A session; ``forget`` is called with it when it ends. Belongs to one event loop."""

    def __init__(
        self, service: str, server: Server, timeout_s: float, forget: Callable[[Session], None]
    ) -> None:
        self.id = uuid4().hex
        self.used_at = time.monotonic()
        self._service = service
        self._server = server
        self._forget = forget
        self._transport = StreamableHTTPServerTransport(mcp_session_id=self.id)
        self._in_flight: dict[Any, Any] = {}  # the ids of the client's requests, each with a token
        self._deadlines = Deadlines(timeout_s, self._give_up)
        self._unheard: deque[Message] = deque(maxlen=_WAITING)
        self._flushing: asyncio.Future[None] | None = None
        self._listening = 0
        self._exchanges = 0
        self._quiet = asyncio.Event()
        self._write: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        server.receive = self._return
        self._running = asyncio.ensure_future(self._run())

    @property
    def idle(self) -> bool:
        """Whether no request is being answered, and nobody listens."""
        return self._exchanges == 0

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer a request of the client; return whether the answer was no refusal."""
        await asyncio.shield(self._write)
        accepted = False

        async def watching(event: Event) -> None:
            nonlocal accepted
            if event["type"] == "http.response.start":
                accepted = event["status"] < 400
                if accepted and scope["method"] == "GET":
                    self._listen()
            await send(event)

        self._begin()
        try:
            await self._transport.handle_request(scope, receive, watching)
        finally:
            self._done(listened=accepted and scope["method"] == "GET")
        if self._transport.is_terminated:  # the client has ended it
            await self.end()
        return accepted

    async def end(self) -> None:
        """End the session and its process."""
        await self._server.end()
        await asyncio.wait({self._running})

    def _begin(self) -> None:
        self._exchanges += 1
        self._quiet.clear()

    def _done(self, *, listened: bool) -> None:
        self.used_at = time.monotonic()
        self._exchanges -= 1
        self._listening -= listened
        if self.idle:
            self._quiet.set()

    def _listen(self) -> None:
        """Pass on what the server has said before the client listened, as a request for roots."""
        self._listening += 1
        self._flushing = asyncio.ensure_future(self._flush())

    async def _flush(self) -> None:
        while self._unheard:
            await self._pass(self._unheard.popleft())

    async def _run(self) -> None:
        try:
            async with self._transport.connect() as (read, write):
                self._write.set_result(write)
                forwarding = asyncio.ensure_future(self._forward(read))
                try:
                    await asyncio.wait({self._server.lost})
                    self._forget(self)
                    await asyncio.wait_for(self._answer_the_rest(), _LAST_ANSWERS_S)
                except asyncio.TimeoutError:
                    pass  # a client that does not read
                finally:
                    await self._close(forwarding)
        finally:
            self._forget(self)

    async def _close(self, forwarding: asyncio.Future[None]) -> None:
        self._deadlines.close()
        tasks = [task for task in (forwarding, self._flushing) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if not self._transport.is_terminated:
            await self._transport.terminate()

    async def _forward(self, read: Any) -> None:
        """Pass the client's messages on to the process."""
        async for item in read:
            if isinstance(item, Exception):
                continue
            message = item.message.model_dump(by_alias=True, exclude_unset=True, mode="json")
            if is_request(message):
                self._in_flight[message["id"]] = progress_token(message)
                self._deadlines.begin(message["id"])
            try:
                await self._server.send(message)
            except BackendLostError:
                return

    async def _return(self, message: Message) -> None:
        """Pass a message of the process on to the client."""
        await asyncio.shield(self._write)
        if is_response(message):
            id_ = message.get("id")
            self._deadlines.end(id_)
            if id_ in self._in_flight:
                del self._in_flight[id_]
                await self._pass(message)
            return
        related = self._related(message)
        if related is None and not self._listening:
            self._unheard.append(message)
            await asyncio.sleep(PAUSE_S)
            return
        await self._pass(message, related)

    async def _pass(self, message: Message, related: Any = None) -> None:
        try:
            whole = jsonrpc_message_adapter.validate_python(message)
        except ValidationError:
            self._server.note_foreign(message)
            return
        metadata = None if related is None else ServerMessageMetadata(related_request_id=related)
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # the client ended it
            await self._write.result().send(SessionMessage(whole, metadata))

    def _related(self, message: Message) -> Any:
        """Return the id of the request in whose answer a message of the server belongs, or None.

        Only progress says so. Anything else that comes during a request belongs to the newest:
        it has the same client, whatever request it is.
        """
        if message.get("method") == "notifications/progress":
            token = progress_token(message)
            for id_, known in self._in_flight.items():
                if known is not None and known == token:
                    self._deadlines.begin(id_)
                    return id_
        return next(reversed(self._in_flight), None)

    async def _give_up(self, id_: Any) -> None:
        if self._in_flight.pop(id_, self) is self:
            return
        why = f"has not answered for {self._deadlines.patience_s:g} s"
        self._server.cancel(id_, why)
        await self._pass(failed(id_, told(self._service, why)))

    async def _answer_the_rest(self) -> None:
        """Answer what is in flight with the reason of the process's end."""
        message = str(self._server.error())
        for id_ in [*self._in_flight]:
            await self._pass(failed(id_, message))
        if not self.idle and not self._listening:
            await self._quiet.wait()
