"""The sockets of one kernel: the shell channel for requests and replies, IOPub for outputs.

We read them ourselves, because jupyter_client's client drops outputs at its high-water mark and
waits 200 ms for readiness. Import this module only to start a kernel, because zmq takes long.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import zmq
import zmq.asyncio
from jupyter_client.session import DELIM, Session

from agentdouble.sandbox.result import TOO_DEEP

_log = logging.getLogger(__name__)

_SHARE = 20  # messages, about 0.1 ms each
_LARGE = 64 * 1024  # bytes; such a message takes as long as several others

_CHANNELS = {"shell": 1, "iopub": 2, "stdin": 3, "control": 4, "hb": 5}  # their ports
Message: TypeAlias = dict[str, Any]
Handler = Callable[[Message], None]


class KernelSockets:
    """The zmq context of all kernels of a double; close it when the last kernel has ended."""

    def __init__(self) -> None:
        self.context = zmq.asyncio.Context()
        # The default of 1023 is enough for about 500 kernels; each socket takes 12 bytes.
        self.context.set(zmq.MAX_SOCKETS, self.context.get(zmq.SOCKET_LIMIT))
        self.context.setsockopt(zmq.RECONNECT_IVL, 5)  # ms; zmq's own 100 delays every start
        self.context.setsockopt(zmq.RCVHWM, 0)  # no limit: a flood must not drop outputs

    def close(self) -> None:
        """Close the context and all sockets that are still open."""
        self.context.destroy(linger=0)


class KernelConnection:
    """The addresses and the key of one kernel, and the file in ``run`` from which it reads them."""

    def __init__(self, run: Path, sockets: KernelSockets) -> None:
        self.run = run
        self.file = str(run / "kernel.json")
        self.session = Session(key=secrets.token_hex(16).encode())
        self._context = sockets.context
        document = {
            "transport": "ipc",
            "ip": f"{run}/kernel",
            "key": self.session.key.decode(),
            "signature_scheme": self.session.signature_scheme,
            **{f"{channel}_port": number for channel, number in _CHANNELS.items()},
        }
        descriptor = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(document, file)

    def channels(self, *, on_shell: Handler, on_iopub: Handler) -> KernelChannels:
        """Return the channels of the kernel; raise OSError if there is no room."""
        return KernelChannels(self, on_shell=on_shell, on_iopub=on_iopub)

    def open(self, kind: int, channel: str, identity: bytes | None = None) -> zmq.asyncio.Socket:
        """Return a socket that is connected to a channel; raise OSError if there is no room."""
        try:
            socket = self._context.socket(kind)
        except zmq.ZMQError as error:
            raise OSError(error.errno, error.strerror) from error
        if identity is not None:
            socket.setsockopt(zmq.IDENTITY, identity)
        socket.connect(f"ipc://{self.run}/kernel-{_CHANNELS[channel]}")
        return socket

    def parts(self, frames: list[bytes]) -> list[bytes]:
        """Return the parts of a message: header, parent header, metadata, content and buffers.

        Raises ValueError if it is incomplete or not signed with the kernel's key: code of the
        session can send anything.
        """
        signature, *parts = frames[frames.index(DELIM) + 1 :]
        if len(parts) < 4 or not hmac.compare_digest(signature, self.session.sign(parts[:4])):
            raise ValueError("The message is incomplete, or the signature is not the kernel's.")
        return parts

    def remove(self) -> None:
        """Remove the file and the sockets of a kernel that has ended."""
        sockets = (f"{self.run}/kernel-{number}" for number in _CHANNELS.values())
        for path in (self.file, *sockets):
            with contextlib.suppress(OSError):
                os.unlink(path)  # noqa: PTH108


class KernelChannels:
    """Sends messages to a kernel, and calls a handler with each message from the kernel."""

    def __init__(
        self, connection: KernelConnection, *, on_shell: Handler, on_iopub: Handler
    ) -> None:
        self._session = connection.session
        self._parts = connection.parts
        self._shell = connection.open(zmq.DEALER, "shell")
        try:
            self._iopub = connection.open(zmq.SUB, "iopub")
        except BaseException:
            self._shell.close(linger=0)
            raise
        self._iopub.subscribe(b"")
        self._listeners = (
            asyncio.ensure_future(self._listen(self._iopub, on_iopub)),
            asyncio.ensure_future(self._listen(self._shell, on_shell)),
        )

    def message(self, msg_type: str, content: Mapping[str, Any]) -> Message:
        """Return a request that has not been sent yet."""
        message: Message = self._session.msg(msg_type, dict(content))
        return message

    async def send(self, message: Message) -> None:
        """Send a request."""
        # Not by Session.send: it uses the socket below the asyncio socket, which clears the only
        # event that announces replies, and then they are never read.
        await self._shell.send_multipart(self._session.serialize(message))

    async def close(self) -> None:
        """Stop listening and close the sockets."""
        for listener in self._listeners:
            listener.cancel()
        await asyncio.gather(*self._listeners, return_exceptions=True)
        for socket in (self._shell, self._iopub):
            socket.close(linger=0)  # jupyter_client waits a second for unsent messages

    def _read(self, frames: list[bytes]) -> Message:
        # Not by Session.deserialize: half of its time goes to dates, which nothing here reads.
        header, parent, _, content = (
            self._session.unpack(part) for part in self._parts(frames)[:4]
        )
        return {"header": header, "parent_header": parent, "content": content}

    def _too_deep(self, frames: list[bytes]) -> Message:
        """Return an output in place of a message that is nested too deeply for Python."""
        header, parent = (self._session.unpack(part) for part in self._parts(frames)[:2])
        return {
            "header": {**header, "msg_type": "stream"},
            "parent_header": parent,
            "content": {"name": "stderr", "text": TOO_DEEP},
        }

    async def _listen(self, socket: zmq.asyncio.Socket, handler: Handler) -> None:
        handled = 0
        while True:
            handled += 1
            if (
                handled % _SHARE == 0
            ):  # waiting messages are received without a pause, so let other tasks run
                await asyncio.sleep(0)
            received = await socket.recv_multipart()
            if sum(map(len, received)) > _LARGE:
                handled = 0
                await asyncio.sleep(0)
            message = None
            try:
                message = self._read(received)
            except ValueError:  # not signed with this kernel's key, or garbled
                continue
            except RecursionError:
                pass
            try:
                try:
                    handler(message or self._too_deep(received))
                except RecursionError:  # it could be read, but not written again
                    handler(self._too_deep(received))
            except Exception:  # code can publish anything; the next message must be handled
                _log.exception("A message of a kernel is malformed.")
