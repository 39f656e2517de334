"""A session: a client over HTTP and a process of its own, with the transports of the MCP SDK.

A server on standard streams has one client. It remembers what the client can do, and asks it for
input, models and roots without saying which client it asks. So clients never share a process.
Messages pass through unchanged.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import anyio
from anyio.abc import TaskGroup
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import (
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from starlette.types import Message as Event
from starlette.types import Receive, Scope, Send

from agentdouble.mcp_hosting import INTERNAL_ERROR
from agentdouble.mcp_services.started_process import LONGEST_LINE, Started

IDLE_S = 1800.0
_UNHEARD = 64  # messages for a client that does not listen yet; the oldest is forgotten first
_PAUSE_S = 0.001  # after a message that nobody wants, so that a flood leaves time for others
_END_WITHIN_S = 1.0
_LAST_ANSWERS_S = 2.0

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class _Pending:
    """A request of the client that the process has not answered."""

    deadline: float
    progress_token: Any
    answered: anyio.Event = field(default_factory=anyio.Event)


class StdioSession:
    """A session; ``forget`` is called with it when it ends. Belongs to one event loop."""

    def __init__(
        self,
        service: str,
        started: Started,
        timeout_s: float,
        forget: Callable[[StdioSession], None],
    ) -> None:
        self.id = uuid4().hex
        self.used_at = time.monotonic()
        self._service = service
        self._started = started
        self._timeout_s = timeout_s
        self._forget = forget
        self._transport = StreamableHTTPServerTransport(mcp_session_id=self.id, idle_timeout=IDLE_S)
        self._pending: dict[Any, _Pending] = {}
        self._unheard: deque[JSONRPCMessage] | None = deque(maxlen=_UNHEARD)
        self._posts = 0
        self._quiet = asyncio.Event()
        self._connected: asyncio.Future[TaskGroup] = asyncio.get_running_loop().create_future()
        self._write: Any = None
        self._running = asyncio.ensure_future(self._run())

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return self._posts > 0

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer a request of the client; return whether the answer was no refusal."""
        # Shielded: a client that disconnects must not cancel what others wait for.
        tasks = await asyncio.shield(self._connected)
        accepted = False

        async def watching(event: Event) -> None:
            nonlocal accepted
            if event["type"] == "http.response.start":
                accepted = event["status"] < 400
                # Not before: the transport drops messages while no GET listens.
                if accepted and scope["method"] == "GET":
                    tasks.start_soon(self._flush)
            await send(event)

        posts = scope["method"] == "POST"
        self._posts += posts
        self._quiet.clear()
        try:
            await self._transport.handle_request(scope, receive, watching)
        finally:
            self.used_at = time.monotonic()
            self._posts -= posts
            if not self.busy:
                self._quiet.set()
        return accepted

    async def end(self) -> None:
        """End the session; return when nothing of its process is left."""
        self._running.cancel()
        await asyncio.wait({self._running})

    async def _run(self) -> None:
        try:
            async with self._transport.connect() as (read, self._write):
                with self._transport.idle_scope or anyio.CancelScope():
                    async with anyio.create_task_group() as tasks:
                        self._connected.set_result(tasks)
                        tasks.start_soon(self._forward, read, tasks)
                        await self._pass_back()
                        tasks.cancel_scope.cancel()
        except Exception:
            _log.exception("A session of the MCP service %r broke off.", self._service)
        finally:
            # Forget first: a request that comes during the end gets a new session or a 404.
            self._forget(self)
            with anyio.CancelScope(shield=True):
                await self._end_process()
                await self._transport.terminate()

    async def _end_process(self) -> str:
        """Close its input, which ends a server that keeps to the protocol; then end it."""
        self._started.input.close()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._started.wait()), _END_WITHIN_S)
        return await self._started.end(_END_WITHIN_S)

    async def _forward(self, read: Any, tasks: TaskGroup) -> None:
        """Pass the client's messages on to the process, until the client ends the session."""
        async for item in read:
            if isinstance(item, Exception):
                continue
            message = item.message
            if isinstance(message, JSONRPCRequest):
                token = ((message.params or {}).get("_meta") or {}).get("progressToken")
                pending = _Pending(time.monotonic() + self._timeout_s, token)
                self._pending[message.id] = pending
                tasks.start_soon(self._watch, message.id, pending)
            self._write_line(message)
            try:
                await self._started.input.drain()
            except (OSError, RuntimeError):  # it has ended, and its last output is still read
                return
        tasks.cancel_scope.cancel()

    def _write_line(self, message: JSONRPCMessage) -> None:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        self._started.input.write(text.encode() + b"\n")

    async def _watch(self, id_: Any, pending: _Pending) -> None:
        """Answer a request with an error if the process does not answer it in time."""
        while not pending.answered.is_set():
            remaining = pending.deadline - time.monotonic()
            if remaining <= 0:
                reason = f"has not answered for {self._timeout_s:g} s"
                params = {"requestId": id_, "reason": reason}
                self._write_line(
                    JSONRPCNotification(
                        jsonrpc="2.0", method="notifications/cancelled", params=params
                    )
                )
                await self._fail(id_, reason)
                return
            with anyio.move_on_after(remaining):
                await pending.answered.wait()

    async def _pass_back(self) -> None:
        """Pass the process's messages on to the client until its output ends."""
        reason = await self._read()
        ending = await self._end_process()
        self._forget(self)
        self._note(reason or ending)
        with anyio.move_on_after(_LAST_ANSWERS_S):  # the client may not read
            for id_ in [*self._pending]:
                await self._fail(id_, reason or ending)
            if self.busy:
                await self._quiet.wait()

    async def _read(self) -> str | None:
        """Read lines until the output ends; return why the process must end, if that is known."""
        foreign = False
        while True:
            try:
                line = await self._started.lines.readuntil(b"\n")
            except asyncio.IncompleteReadError as error:
                if error.partial.strip():
                    self._started.log(error.partial)
                return None
            except asyncio.LimitOverrunError:
                return f"wrote a line of more than {LONGEST_LINE >> 20} MiB"
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:  # many servers greet on standard output
                if line.strip():
                    self._started.log(line)
                if line.strip() and not foreign:
                    foreign = True
                    excerpt = line.strip()[:200].decode(errors="replace")
                    self._note(
                        f"wrote a line to its standard output that is not JSON-RPC: {excerpt!r}"
                    )
                await asyncio.sleep(_PAUSE_S)
            else:
                await self._return(message)

    async def _return(self, message: JSONRPCMessage) -> None:
        if isinstance(message, (JSONRPCResponse, JSONRPCError)):
            # Otherwise it has been answered with an error, because it came too late.
            if message.id in self._pending:
                self._pending.pop(message.id).answered.set()
                await self._send(message)
            return
        related = self._related(message)
        if related is None and self._unheard is not None:
            self._unheard.append(message)
            await asyncio.sleep(_PAUSE_S)
            return
        await self._send(message, related)

    def _related(self, message: JSONRPCRequest | JSONRPCNotification) -> Any:
        """Return the id of the request whose answer should carry a message of the server, or None.

        Only progress says so. Anything else that comes during a request belongs to the newest.
        """
        if message.method == "notifications/progress":
            token = (message.params or {}).get("progressToken")
            for id_, pending in self._pending.items():
                if pending.progress_token is not None and pending.progress_token == token:
                    pending.deadline = time.monotonic() + self._timeout_s
                    return id_
        return next(reversed(self._pending), None)

    async def _flush(self) -> None:
        """Pass on what the server said before the client listened, such as a request for roots."""
        # None from now on, before the first await: later messages go to the client directly.
        unheard, self._unheard = self._unheard or (), None
        for message in unheard:
            await self._send(message)

    async def _fail(self, id_: Any, reason: str) -> None:
        """Answer a request with the reason why the process does not answer it."""
        pending = self._pending.pop(id_, None)
        if pending is not None:
            pending.answered.set()
            error = ErrorData(code=INTERNAL_ERROR, message=described(self._service, reason))
            await self._send(JSONRPCError(jsonrpc="2.0", id=id_, error=error))

    async def _send(self, message: JSONRPCMessage, related: Any = None) -> None:
        metadata = None if related is None else ServerMessageMetadata(related_request_id=related)
        # the client ended the session
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await self._write.send(SessionMessage(message, metadata))

    def _note(self, event: str) -> None:
        self._started.note(event)
        _log.warning("The server of the MCP service %r %s.", self._service, event)


def described(service: str, event: str) -> str:
    """Return the error message about the server of a service."""
    return (
        f"The server of the MCP service {service!r} {event}. "
        f"What it printed: /_emulator/mcp-services/{service}/logs"
    )
