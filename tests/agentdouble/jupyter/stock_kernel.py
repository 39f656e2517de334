"""A kernel of ipykernel itself, with which the kernels of sessions are compared."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

import zmq
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.agentdouble.jupyter.notebook_client import TIMEOUT_S, Message, Notebook

CHANNELS = ("shell", "control", "stdin", "iopub")


class StockKernel(Notebook):
    """A client of a stock kernel, by its sockets."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self._client = client
        self._sockets = {
            getattr(client, f"{channel}_channel").socket: channel for channel in CHANNELS
        }
        self.earlier = []

    def _write(self, parts: Sequence[Mapping[str, Any]], channel: str) -> None:
        names = ("header", "parent_header", "metadata", "content")
        message = dict(zip(names, parts, strict=True))
        (socket,) = (it for it, its_channel in self._sockets.items() if its_channel == channel)
        socket.send_multipart(self._client.session.serialize(message))

    def receive(self) -> Message:
        """Return the next message of any channel."""
        poller = zmq.Poller()
        for socket in self._sockets:
            poller.register(socket, zmq.POLLIN)
        ready = poller.poll(TIMEOUT_S * 1000)
        assert ready, "the kernel does not answer"
        socket, _ = ready[0]
        _, message = self._client.session.recv(socket)
        assert message is not None
        return {**message, "channel": self._sockets[socket]}


@contextmanager
def stock_kernel() -> Iterator[StockKernel]:
    """Start a kernel with directories of its own; end it afterwards."""
    with TemporaryDirectory(prefix="stock-") as folder:
        own = {"IPYTHONDIR": folder, "JUPYTER_RUNTIME_DIR": folder, "MPLCONFIGDIR": folder}
        manager = KernelManager(transport="ipc", connection_file=f"{folder}/kernel.json")
        manager.start_kernel(env={**os.environ, **own}, cwd=folder)
        client = manager.blocking_client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=TIMEOUT_S)
            yield StockKernel(client)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
            manager.cleanup_resources()
