"""V8's inspector protocol, and the errors of a cell in Jupyter's form.

Such an error has a name, a value and the lines of a traceback.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import socket
import sys
from collections.abc import Mapping, Sequence
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


PREFIX = "await __cell();"
_FRAME = re.compile(r"(?P<file><anonymous>|cell-\d+\.js):(?P<line>\d+):(?P<column>\d+)")
_OURS = re.compile(r"\s+at .*(\$deno\$stdin\.|ext:core/)")
_LINE_END = re.compile(r"\r\n|[\n\r\u2028\u2029]")


_DECORATORS = "a cell cannot have decorators: write the class to a .ts file, and import it"


class CellError(Exception):
    """A cell has failed; ``context_lost`` says whether the session's variables are lost too."""

    def __init__(
        self, name: str, value: str, traceback: Sequence[str] = (), *, context_lost: bool = False
    ) -> None:
        super().__init__(f"{name}: {value}")
        self.name = name
        self.value = value
        self.traceback = list(traceback) or [f"{name}: {value}"]
        self.context_lost = context_lost


def thrown(description: Mapping[str, Any], details: Mapping[str, Any]) -> CellError:
    """Return the error that a cell threw while it ran."""
    return CellError(
        description["name"], description["message"], readable(description["stack"], details)
    )


def readable(stack: str, details: Mapping[str, Any]) -> list[str]:
    """Return the lines of a stack that belong to the cell, with positions in its source."""
    urls = _urls(details)
    return [
        _FRAME.sub(lambda frame: _location(frame, urls), line)
        for line in stack.splitlines()
        if not _OURS.match(line)
    ]


def unparsable(
    description: Mapping[str, Any], details: Mapping[str, Any], source: str, number: int
) -> CellError:
    """Return the error of a cell that could not start, with the line that is wrong."""
    name, message = description["name"], description["message"]
    line, column = position(details)
    lines = _LINE_END.split(source)
    if line >= len(lines):  # the source has fewer lines
        line, column = len(lines) - 1, len(lines[-1])
    if lines[line][column : column + 1] == "@":
        message += f": {_DECORATORS}"
    location = f"    at cell-{number}.js:{line + 1}:{column + 1}"
    mark = " " * column + "^"
    return CellError(name, message, [f"{name}: {message}", lines[line], mark, location])


def position(details: Mapping[str, Any]) -> tuple[int, int]:
    """Return the line and column of an error, from 0, in the cell as it was written."""
    line, column = details["lineNumber"], details["columnNumber"]
    return (line, column) if line else (0, max(0, column - len(PREFIX)))


def offset(source: str, line: int, column: int) -> int:
    """Return a position's index in ``source``; V8 counts columns in UTF-16 units."""
    start = 0
    for _ in range(line):
        end = _LINE_END.search(source, start)
        assert end is not None
        start = end.end()
    units = source[start:].encode("utf-16-le", "surrogatepass")[: 2 * column]
    return start + len(units.decode("utf-16-le", "surrogatepass"))


def _urls(details: Mapping[str, Any]) -> dict[tuple[int, int], str]:
    """Return scripts by position, because an error's own stack calls each one <anonymous>."""
    frames = details.get("stackTrace", {}).get("callFrames", ())
    return {(f["lineNumber"] + 1, f["columnNumber"] + 1): f["url"] for f in frames if f["url"]}


def _location(frame: re.Match[str], urls: Mapping[tuple[int, int], str]) -> str:
    line, column = int(frame["line"]), int(frame["column"])
    file = urls.get((line, column), frame["file"])
    if line == 1 and (file == "<anonymous>" or file.startswith("cell-")):
        column = max(1, column - len(PREFIX))
    return f"{file}:{line}:{column}"
