"""A client of a kernel: its sockets, and the messages that wait for it."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client.session import DELIM

from agentdouble.errors import KernelStartError, SandboxError
from agentdouble.jupyter.websocket_wire import ChannelMessage
from agentdouble.sandbox.kernel import Kernel

LIMIT = 64 * 1024 * 1024  # bytes that wait for a client
_NUDGE_S = 0.1
_NUDGES = 100
_QUESTIONS = 1000
_AT_ONCE = 50  # messages that a client receives without a pause
_KINDS = {"shell": zmq.DEALER, "control": zmq.DEALER, "stdin": zmq.DEALER, "iopub": zmq.SUB}


_IDLE = b'"idle"'


@dataclass
class _Request:
    """Code of a client: the header of its message, and the channels that have not ended it."""

    header: bytes
    pending: set[str] = field(default_factory=lambda: {"shell", "iopub"})


class KernelClient:
    """Passes messages between a kernel and one client, which may disconnect and come back.

    What arrives meanwhile waits, up to ``LIMIT`` bytes; then the client is ``closed``.
    ``connection`` counts the client's connections: an older one ends when a newer one begins.
    """

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.connection = 0
        self.closed = False
        self.connected = False
        self._identity = uuid.uuid4().hex.encode()  # the same for input requests and their replies
        self._pending: deque[ChannelMessage] = deque()
        self._size = 0
        self._news = asyncio.Event()
        self.code: asyncio.Queue[ChannelMessage] = asyncio.Queue()  # waits for the session's turn
        self.sender: asyncio.Task[None] | None = None  # of what is in ``code``
        self._requests: dict[str, _Request] = {}  # code that runs or waits, by id
        self._questions: dict[str, ChannelMessage] = {}  # other requests without a reply, by id
        self._last: bytes | None = None  # the header of the code that was sent last
        self._kernel: Kernel | None = None
        self._sockets: dict[str, zmq.asyncio.Socket] = {}
        self._listeners: list[asyncio.Task[None]] = []

    async def open(self, kernel: Kernel) -> None:
        """Connect to a kernel; return when its outputs arrive. Raise KernelStartError, OSError."""
        if self._kernel is kernel:
            return
        self.detach()
        self._kernel = kernel
        subscribed, nudge = asyncio.Event(), uuid.uuid4().hex
        for channel, kind in _KINDS.items():
            identity = None if channel == "iopub" else self._identity
            self._sockets[channel] = kernel.connection.open(kind, channel, identity)
        self._sockets["iopub"].subscribe(b"")
        self._listeners = [
            asyncio.ensure_future(self._listen(channel, subscribed, nudge.encode()))
            for channel in self._sockets
        ]
        # messages before the subscription are lost; a busy kernel answers on the control channel
        session = kernel.connection.session
        for number in range(_NUDGES):
            message = session.msg("kernel_info_request", {})
            # a new id each time, because a kernel drops a message that it has seen
            message["header"]["msg_id"] = f"{nudge}-{number}"
            await self._sockets["control"].send_multipart(session.serialize(message))
            try:
                await asyncio.wait_for(subscribed.wait(), _NUDGE_S)
                return
            except asyncio.TimeoutError:
                if kernel.died.done():
                    break
        raise KernelStartError(kernel.language.display_name, "its outputs do not arrive")

    async def _listen(self, channel: str, subscribed: asyncio.Event, nudge: bytes) -> None:
        assert self._kernel is not None
        connection = self._kernel.connection
        handled = 0
        while True:
            frames: list[bytes] = await self._sockets[channel].recv_multipart()
            handled += 1
            if handled % _AT_ONCE == 0:
                await asyncio.sleep(0)
            try:
                parts = connection.parts(frames)
            except ValueError:
                continue
            if channel == "iopub":
                subscribed.set()
            if nudge in parts[1] or b'"iopub_welcome"' in parts[0]:
                continue
            self._note(channel, parts)
            self.receive(ChannelMessage(channel, parts))

    async def send(self, message: ChannelMessage) -> None:
        """Send a message to the kernel, which must live."""
        if self._kernel is None:
            return
        signature = self._kernel.connection.session.sign([*message.parts[:4]])
        await self._sockets[message.channel].send_multipart([DELIM, signature, *message.parts])

    def receive(self, message: ChannelMessage) -> None:
        """Let a message wait for the client."""
        if self.closed:
            return
        self._pending.append(message)
        self._size += message.size
        if self._size > LIMIT:
            self.close()
        self._news.set()

    async def messages(self, connection: int) -> AsyncIterator[ChannelMessage]:
        """Yield the messages for a connection, until there is a newer one or the client closes."""
        while not self.closed and connection == self.connection:
            for _ in range(min(len(self._pending), _AT_ONCE)):
                message = self._pending.popleft()
                self._size -= message.size
                yield message
            if self._pending:
                await asyncio.sleep(0)
            else:
                self._news.clear()
                await self._news.wait()

    def connect(self) -> int:
        """Begin a connection and return its number; an older one ends."""
        self.connection += 1
        self.connected = True
        self._news.set()
        return self.connection

    def note_request(self, msg_id: str, header: bytes) -> None:
        """Note code of this client that has not ended, to end it if the kernel ends.

        A kernel that exits may have sent the reply and no idle status, or the reverse.
        """
        self._requests[msg_id] = _Request(header)
        self._last = header

    def note_question(self, message: ChannelMessage) -> None:
        """Note another request, to answer it if the kernel ends; a kernel may never answer it."""
        if message.header["msg_type"].endswith("_request"):
            self._questions[message.header["msg_id"]] = message
            if len(self._questions) > _QUESTIONS:
                del self._questions[next(iter(self._questions))]

    def _note(self, channel: str, parts: Sequence[bytes]) -> None:
        """Note the reply and the idle status of a request."""
        if channel == "iopub" and not (self._requests and _IDLE in parts[3]):
            return
        try:
            msg_id = json.loads(parts[1]).get("msg_id")
            request = self._requests.get(msg_id)
            if channel in ("shell", "control"):
                self._questions.pop(msg_id, None)
        except (ValueError, AttributeError, TypeError, RecursionError):
            return  # code of a session can sign anything
        if request is not None:
            request.pending.discard(channel)
            if not request.pending:
                del self._requests[msg_id]

    def answer_with_error(self, name: str, text: str, header: bytes | None = None) -> None:
        """Answer one request, or all that have not ended, as if their code had raised an error."""
        if header is None:
            self._answer_questions(SandboxError(text, name, 409))
        requests = [_Request(header)] if header is not None else [*self._requests.values()]
        self._requests.clear()
        error = {"ename": name, "evalue": text, "traceback": [f"{name}: {text}"]}
        reply = {"status": "error", "execution_count": None, **error}
        for request in requests:
            if "shell" in request.pending:
                self._say("iopub", "status", {"execution_state": "busy"}, request.header)
                self._say("iopub", "error", error, request.header)
                self._say("shell", "execute_reply", reply, request.header)
                self._last = None  # it has been told
            self._say("iopub", "status", {"execution_state": "idle"}, request.header)

    def _answer_questions(self, error: SandboxError) -> None:
        questions, self._questions = self._questions, {}
        for question in questions.values():
            if question.header["msg_type"] == "shutdown_request":  # it has done so
                content = {"status": "ok", "restart": False}
                self._say(question.channel, "shutdown_reply", content, bytes(question.parts[0]))
            else:
                self.refuse(question, error)

    def tell_state(self, state: str) -> None:
        """Tell the state of the kernel, which no message of the client caused."""
        self._say("iopub", "status", {"execution_state": state}, b"{}")

    def tell_end(self, text: str, *, is_final: bool) -> None:
        """Tell that the kernel has ended, as an output of the last cell, which JupyterLab shows.

        If this is final, tell also the state dead, at which JupyterLab disconnects. It would not
        restart a dead kernel.
        """
        if self._last is not None:
            error = {
                "ename": "SessionEnded",
                "evalue": text,
                "traceback": [f"SessionEnded: {text}"],
            }
            self._say("iopub", "error", error, self._last)
            self._last = None
        if is_final:
            self.tell_state("dead")

    def refuse(self, request: ChannelMessage, error: SandboxError) -> None:
        """Answer a request that the kernel does not get."""
        kind = request.header["msg_type"].removesuffix("_request")
        content = {"status": "error", "ename": error.code, "evalue": str(error), "traceback": []}
        self._say(request.channel, f"{kind}_reply", content, bytes(request.parts[0]))

    def _say(self, channel: str, kind: str, content: Mapping[str, Any], parent: bytes) -> None:
        header = {
            "msg_id": uuid.uuid4().hex,
            "msg_type": kind,
            "session": json.loads(parent).get("session", ""),
            "username": "agentdouble",
            "date": json.loads(parent).get("date"),
            "version": "5.3",
        }
        parts = [json.dumps(header).encode(), parent, b"{}", json.dumps(content).encode()]
        self.receive(ChannelMessage(channel, parts))

    def detach(self) -> None:
        """Close the sockets, because the kernel has ended or is restarted."""
        for listener in self._listeners:
            listener.cancel()
        for socket in self._sockets.values():
            socket.close(linger=0)
        self._sockets, self._listeners, self._kernel = {}, [], None

    def close(self) -> None:
        """End the client and its connection."""
        self.closed = True
        self.detach()
        if self.sender is not None:
            self.sender.cancel()
        self._pending.clear()
        self._news.set()
