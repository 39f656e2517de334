"""The sockets of one kernel: the shell channel for requests and replies, IOPub for outputs.

We read them ourselves, because jupyter_client's client drops outputs at its high-water mark and
waits 200 ms for readiness. jupyter_client's provisioners still start and stop the kernel.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    import zmq.asyncio

    from agentdouble.sandbox.kernel_manager import SandboxKernelManager

_log = logging.getLogger(__name__)

_SHARE = 20  # messages, about 0.1 ms each
_LARGE = 64 * 1024  # bytes; such a message takes as long as several others

Message: TypeAlias = dict[str, Any]
Handler = Callable[[Message], None]


class KernelChannels:
    """Sends messages to a kernel, and calls a handler with each message from the kernel."""

    def __init__(
        self, manager: SandboxKernelManager, *, on_shell: Handler, on_iopub: Handler
    ) -> None:
        self._session = manager.session
        self._name = manager.kernel_name
        self._shell, self._iopub = _connect(manager)
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

    async def _listen(self, socket: zmq.asyncio.Socket, handler: Handler) -> None:
        turn = 0
        while True:
            turn += 1
            if (
                turn % _SHARE == 0
            ):  # waiting messages are received without a pause, so let other tasks run
                await asyncio.sleep(0)
            received = await socket.recv_multipart()
            if sum(map(len, received)) > _LARGE:
                turn = 0
                await asyncio.sleep(0)
            try:
                message = self._session.deserialize(self._session.feed_identities(received)[1])
            except (ValueError, TypeError):  # not signed with this kernel's key, or garbled
                continue
            try:
                handler(message)
            except Exception:  # code can publish anything; the next message must be handled
                _log.exception("A message of the %s kernel is malformed.", self._name)


def _connect(manager: SandboxKernelManager) -> tuple[zmq.asyncio.Socket, zmq.asyncio.Socket]:
    """Return the shell and the IOPub socket; both are asyncio sockets, as their context is."""
    shell = manager.connect_shell()
    try:
        iopub = manager.connect_iopub()
    except BaseException:
        shell.close(linger=0)
        raise
    return cast("zmq.asyncio.Socket", shell), cast("zmq.asyncio.Socket", iopub)
