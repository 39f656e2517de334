"""One process that speaks MCP: a JSON-RPC message is a line, in either direction."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from agentdouble.errors import BackendLostError
from agentdouble.mcp_hosting import INTERNAL_ERROR
from agentdouble.mcp_services.stdio.programs import LONGEST_LINE, Started

Message = dict[str, Any]
Receive = Callable[[Message], Awaitable[None]]

END_WITHIN_S = 1.0
MOST_FOREIGN = 1000  # lines in succession that are no messages
PAUSE_S = 0.001  # after a message that nobody wants: who floods waits, and others have their turn
_READ_WITHIN_S = 30.0
_SHOWN = 200  # bytes

_log = logging.getLogger(__name__)


class Server:
    """A started process; it passes each of its messages to ``receive``, and ends once.

    ``lost`` is done when it has ended, with the reason. A line that is no message is in the
    service's log and is otherwise skipped, because many servers greet on standard output.
    """

    def __init__(self, service: str, started: Started, receive: Receive) -> None:
        self.receive = receive
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._service = service
        self._started = started
        self._draining = asyncio.Lock()  # Python 3.10 has one waiter at a time
        self._foreign = 0
        self._foreign_in_all = 0
        self._ending: asyncio.Future[None] | None = None
        self._reading = asyncio.ensure_future(self._run())

    async def send(self, message: Message) -> None:
        """Send a message; raise BackendLostError."""
        if self.lost.done():
            raise self.error()
        try:
            self._write(message)
            async with self._draining:
                await asyncio.wait_for(self._started.input.drain(), _READ_WITHIN_S)
        except asyncio.TimeoutError:
            self._settle(f"has read nothing for {_READ_WITHIN_S:g} s")
            self._ending = asyncio.ensure_future(self.end())  # the reader itself may be here
            raise self.error() from None
        except (BrokenPipeError, ConnectionResetError, RuntimeError):  # the last: it was closed
            await asyncio.wait({self.lost})
            raise self.error() from None

    def cancel(self, request_id: Any, why: str) -> None:
        """Say that nobody waits for the answer to a request any more."""
        if not self.lost.done():
            params = {"requestId": request_id, "reason": why}
            self._write({"method": "notifications/cancelled", "params": params})

    def note_foreign(self, message: Message) -> None:
        """Write a message into the log that belongs to nobody."""
        self._started.log(json.dumps(message).encode())

    def error(self) -> BackendLostError:
        """Return the error for those whom it does not answer any more."""
        return BackendLostError(told(self._service, self.lost.result()), service=self._service)

    async def end(self, why: str = "was ended") -> None:
        """End the process; return when nothing of it is left."""
        self._settle(why)
        self._reading.cancel()
        await asyncio.wait({self._reading})
        await self._end()

    def _write(self, message: Message) -> None:
        whole = {"jsonrpc": "2.0", **message}
        self._started.input.write(json.dumps(whole, separators=(",", ":")).encode() + b"\n")

    def _settle(self, why: str) -> None:
        if not self.lost.done():
            self.lost.set_result(why)

    async def _run(self) -> None:
        try:
            why = await self._read()
        except Exception:
            _log.exception("A message of the MCP service %r could not be passed on.", self._service)
            why = "sent a message that could not be passed on"
        how = await self._end()
        self._settle(why or how)
        _log.warning("%s", told(self._service, self.lost.result()))

    async def _end(self) -> str:
        """Close its input, which ends a server that keeps to the protocol; then end it."""
        self._started.input.close()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._started.wait()), END_WITHIN_S)
        return await self._started.end(END_WITHIN_S)

    async def _read(self) -> str | None:
        """Pass on its messages until its output ends; return why it must end, if that is known."""
        lines = self._started.lines
        while True:
            try:
                line = await lines.readuntil(b"\n")
            except asyncio.IncompleteReadError as error:
                if error.partial.strip():
                    self._note_foreign(error.partial)
                return None
            except asyncio.LimitOverrunError:
                return self._noted(f"wrote a line of more than {LONGEST_LINE >> 20} MiB")
            messages = [*_messages(line)]
            if not messages and line.strip():
                self._note_foreign(line)
                if self._foreign > MOST_FOREIGN:
                    return self._noted("writes what is no JSON-RPC message to its standard output")
            for message in messages:
                self._foreign = 0
                await self.receive(message)

    def _note_foreign(self, line: bytes) -> None:
        self._foreign += 1
        self._foreign_in_all += 1
        self._started.log(line)
        if self._foreign_in_all == 1:
            shown = line.strip()[:_SHOWN].decode(errors="replace")
            self._noted(f"wrote a line to its standard output that is no JSON-RPC: {shown!r}")

    def _noted(self, what: str) -> str:
        self._started.note(what)
        _log.warning("The server of the MCP service %r %s.", self._service, what)
        return what


def told(service: str, what: str) -> str:
    """Return what callers are told of a server."""
    return (
        f"The server of the MCP service {service!r} {what}. "
        f"What it printed: agentdouble mcp logs {service}"
    )


def failed(id_: Any, message: str, code: int = INTERNAL_ERROR) -> Message:
    """Return the error response to a request."""
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}


def is_request(message: Message) -> bool:
    """Return whether a message expects a response."""
    return "method" in message and message.get("id") is not None


def is_response(message: Message) -> bool:
    """Return whether a message is a result or an error."""
    return "method" not in message


def progress_token(message: Message) -> Any:
    """Return the token by which a request, or a notification of progress, is known; or None."""
    params = message.get("params")
    if not isinstance(params, dict):
        return None
    if message.get("method") == "notifications/progress":
        return params.get("progressToken")
    meta = params.get("_meta")
    return meta.get("progressToken") if isinstance(meta, dict) else None


def _messages(line: bytes) -> Iterable[Message]:
    """Return the messages of a line: one, or those of a batch, as one version of MCP has them."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return ()
    found = value if isinstance(value, list) else [value]
    return found if all(map(_is_message, found)) else ()


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        return False
    return isinstance(value.get("method"), str) or "result" in value or "error" in value
