"""A client of the channels of a kernel, as a notebook is one."""

from __future__ import annotations

import itertools
import json
import struct
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import httpx
from websockets.sync.client import ClientConnection, connect

from agentdouble import Emulator

TIMEOUT_S = 60
V1 = "v1.kernel.websocket.jupyter.org"
FIELDS = ("header", "parent_header", "metadata", "content")

Message = dict[str, Any]


class Notebook:
    """A WebSocket to a kernel; ``v1`` says which form its messages have."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._v1 = socket.subprotocol == V1
        self.earlier: list[Message] = []  # messages that had no part in the last execution

    def send(
        self, kind: str, content: Mapping[str, Any], channel: str = "shell", **header: Any
    ) -> str:
        """Send a request with these additional fields in its header, and return its id."""
        own = {"msg_id": uuid.uuid4().hex, "msg_type": kind, "session": "s", "version": "5.3"}
        self._write([{**own, **header}, {}, {}, content], channel)
        return own["msg_id"]

    def _write(self, parts: Sequence[Mapping[str, Any]], channel: str) -> None:
        if self._v1:
            self._socket.send(packed(channel, [json.dumps(part).encode() for part in parts]))
        else:
            document = dict(zip(FIELDS, parts, strict=True))
            self._socket.send(json.dumps({**document, "channel": channel}))

    def execute(self, code: str) -> str:
        """Start code and return the id of its request."""
        flags = {"silent": False, "store_history": True, "stop_on_error": True}
        content = {"code": code, "allow_stdin": True, "user_expressions": {}, **flags}
        return self.send("execute_request", content)

    def receive(self) -> Message:
        """Return the next message, with its ``channel`` and ``buffers``."""
        data = self._socket.recv(TIMEOUT_S)
        if not self._v1:
            assert isinstance(data, str), "a message with buffers needs v1 in this client"
            message: Message = json.loads(data)
            return message
        assert isinstance(data, bytes)
        (count,) = struct.unpack_from("<Q", data)
        offsets = struct.unpack_from(f"<{count}Q", data, 8)
        channel, *parts = (data[start:end] for start, end in itertools.pairwise(offsets))
        fields = dict(zip(FIELDS, map(json.loads, parts[:4]), strict=True))
        return {**fields, "channel": channel.decode(), "buffers": parts[4:]}

    def until_idle(self, msg_id: str) -> list[Message]:
        """Return what a request caused, when it has its reply and the kernel is idle."""
        messages: list[Message] = []
        pending = {"idle", "reply"}
        while pending:
            message = self.receive()
            if message["parent_header"].get("msg_id") != msg_id:
                self.earlier.append(message)
                continue
            messages.append(message)
            if message["content"].get("execution_state") == "idle":
                pending.discard("idle")
            if message["channel"] == "shell":
                pending.discard("reply")
        return messages

    def wait_for(self, kind: str) -> Message:
        """Return the next message of a type."""
        while (message := self.receive())["header"]["msg_type"] != kind:
            pass
        return message

    def drain(self) -> NoReturn:
        """Receive messages until the connection ends; raise ConnectionClosed."""
        while True:
            self.receive()

    def run(self, code: str) -> list[Message]:
        """Run code and return what it caused."""
        return self.until_idle(self.execute(code))

    def text(self, code: str) -> str:
        """Run code and return its stdout."""
        return text(self.run(code))

    def error(self, code: str) -> tuple[str, str]:
        """Run code that fails; return the error's name and value."""
        return error(self.run(code))


def text(messages: list[Message]) -> str:
    """Return the text of all streams."""
    return "".join(m["content"]["text"] for m in messages if m["header"]["msg_type"] == "stream")


def error(messages: list[Message]) -> tuple[str, str]:
    """Return the name and the value of the error in a reply."""
    content = next(m["content"] for m in messages if m["header"]["msg_type"] == "execute_reply")
    return content["ename"], content["evalue"]


def packed(channel: str, parts: list[bytes]) -> bytes:
    """Return a message as one of the protocol v1."""
    pieces = [channel.encode(), *parts]
    offsets = [8 * (len(pieces) + 2)]
    for piece in pieces:
        offsets.append(offsets[-1] + len(piece))
    return b"".join([struct.pack(f"<{len(offsets) + 1}Q", len(offsets), *offsets), *pieces])


class JupyterClient:
    """A client of the REST API of a double's Jupyter server."""

    def __init__(self, double: Emulator) -> None:
        variables = double.environment("jupyter")
        self._address = variables["JUPYTER_GATEWAY_URL"].replace("http", "ws", 1)
        headers = {"Authorization": f"token {double.token}"}
        self.http = httpx.Client(
            base_url=f"{double.url}/jupyter/api", headers=headers, timeout=TIMEOUT_S
        )

    def new_kernel(self) -> str:
        """Make a kernel and return its id."""
        answer = self.http.post("/kernels", json={"name": "python3"})
        assert 201 == answer.status_code, answer.text
        return str(answer.json()["id"])

    def kernel_of(self, user_session_id: str) -> str:
        """Return the id of a session's kernel."""
        kernels = self.http.get("/kernels").json()
        return next(k["id"] for k in kernels if k["user_session_id"] == user_session_id)

    @contextmanager
    def attached(
        self, kernel: str, session_id: str = "", *, v1: bool = False
    ) -> Iterator[Notebook]:
        """Attach to the channels of a kernel."""
        url = f"{self._address}/api/kernels/{kernel}/channels?session_id={session_id}"
        protocols: Any = [V1] if v1 else None
        with connect(url, subprotocols=protocols, proxy=None, max_size=None) as socket:
            yield Notebook(socket)
