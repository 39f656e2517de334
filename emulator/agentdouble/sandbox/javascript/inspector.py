"""V8's inspector protocol over a websocket: calls with answers, and the event of the end."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import sys
from typing import Any

from tornado.websocket import WebSocketClientConnection, WebSocketClosedError, websocket_connect

_LARGEST = 1 << 30  # with tornado's default of 10 MB a large result would close the connection
_DESTROYED = "Execution context was destroyed."


class InspectorClosedError(Exception):
    """The engine has closed the connection, because it has ended."""


class InspectorError(Exception):
    """The inspector has refused a call."""


class Inspector:
    """One connection to an engine's inspector."""

    def __init__(self, connection: WebSocketClientConnection) -> None:
        self._connection = connection
        self._ids = itertools.count(1)
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reader = asyncio.ensure_future(self._read())

    @classmethod
    async def connect(cls, url: str) -> Inspector:
        """Connect to the address that the engine has printed."""
        connection = await websocket_connect(url, max_message_size=_LARGEST)
        assert connection.protocol is not None
        connection.protocol.set_nodelay(True)
        return cls(connection)

    def call(self, method: str, **params: Any) -> asyncio.Future[dict[str, Any]]:
        """Send a call at once and return a future of its answer.

        The future raises InspectorError if the call is refused, or InspectorClosedError if the
        engine ends before it answers.
        """
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        number = next(self._ids)
        message = json.dumps({"id": number, "method": method, "params": params})
        try:
            self._connection.write_message(message)
        except WebSocketClosedError:
            answer.set_exception(InspectorClosedError())
        else:
            self._asked[number] = answer
        return answer

    async def _read(self) -> None:
        try:
            while (text := await self._connection.read_message()) is not None:
                self._acknowledge()
                message = json.loads(text)
                if "id" in message:
                    self._answer(self._asked.pop(message["id"]), message)
                elif message["method"] == "Runtime.executionContextDestroyed":
                    break  # deno is exiting and waits for us to disconnect
        finally:
            self._connection.close()
            for answer in self._asked.values():
                if not answer.done():
                    answer.set_exception(InspectorClosedError())
            self._asked.clear()

    def _acknowledge(self) -> None:
        """Acknowledge the message at once, because deno sends no small answer before it."""
        # The system would delay the acknowledgement by 40 ms. It forgets TCP_QUICKACK, so we set
        # the option again after each message.
        protocol = self._connection.protocol
        stream = None if protocol is None else protocol.stream
        if sys.platform == "linux" and stream is not None:
            stream.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def _answer(self, answer: asyncio.Future[dict[str, Any]], message: dict[str, Any]) -> None:
        if answer.done():  # the caller was cancelled
            return
        if "error" in message and message["error"]["message"] == _DESTROYED:
            answer.set_exception(InspectorClosedError())
        elif "error" in message:
            answer.set_exception(InspectorError(message["error"]["message"]))
        else:
            answer.set_result(message["result"])
