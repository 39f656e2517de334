"""Run cells in a real ipykernel and collect their output."""

from __future__ import annotations

import queue
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from jupyter_client import BlockingKernelClient, KernelManager

TIMEOUT_S = 120
_SILENT_S = 5
# what a cell runs before the tab key is pressed or code interrupted: a kernel has a second or two
PATIENT = """
import agentdouble.sandbox.completions, agentdouble.sandbox.kernel, doublecheck.notebook.magics.completion
agentdouble.sandbox.completions.PATIENCE_S = doublecheck.notebook.magics.completion._PATIENCE_S = 60
agentdouble.sandbox.kernel.INTERRUPT_GRACE_S = 60
"""
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Ran:
    """The output messages of a cell, in order."""

    messages: tuple[tuple[str, dict[str, Any]], ...]

    @property
    def stdout(self) -> str:
        """Return the printed text."""
        return self._stream("stdout")

    @property
    def stderr(self) -> str:
        """Return the text on stderr, which includes warnings and logs."""
        return self._stream("stderr")

    @property
    def bundles(self) -> list[dict[str, Any]]:
        """Return the MIME bundles of returned and displayed values."""
        kinds = ("display_data", "execute_result")
        return [content["data"] for kind, content in self.messages if kind in kinds]

    @property
    def html(self) -> str:
        """Return the HTML of all bundles."""
        return "".join(bundle.get("text/html", "") for bundle in self.bundles)

    @property
    def text(self) -> str:
        """Return the plain text of the last returned or displayed value."""
        return str(self.bundles[-1]["text/plain"])

    @property
    def error(self) -> str | None:
        """Return the traceback without colours, if the cell failed."""
        tracebacks = [content["traceback"] for kind, content in self.messages if kind == "error"]
        return _ANSI.sub("", "\n".join(tracebacks[-1])) if tracebacks else None

    def _stream(self, name: str) -> str:
        streams = (content for kind, content in self.messages if kind == "stream")
        return "".join(content["text"] for content in streams if content["name"] == name)


class NotebookKernel:
    """The kernel of an open notebook."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self._manager = manager
        self._client = client

    def run(self, cell: str) -> Ran:
        """Run a cell to its end and return its output."""
        return Ran(tuple(self.running(cell)))

    def running(self, cell: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Run a cell and yield its output messages as they arrive."""
        message_id = self._client.execute(cell)
        while True:
            message = self._received(self._client.get_iopub_msg, cell)
            if message["parent_header"].get("msg_id") != message_id:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                self._reply(message_id, cell)
                return
            if kind not in ("status", "execute_input"):
                yield kind, content

    def interrupt(self) -> None:
        """Interrupt the running cell, as the notebook's stop button does."""
        self._manager.interrupt_kernel()

    def restart(self) -> None:
        """Restart the kernel, as the notebook's button does, and wait until it is ready."""
        self._manager.restart_kernel(now=False)
        self._client.wait_for_ready(timeout=TIMEOUT_S)

    def complete(self, code: str, position: int | None = None) -> list[str]:
        """Return the tab completions in a cell, by default at its end."""
        message_id = self._client.complete(code, position)
        return list(self._reply(message_id, code)["content"]["matches"])

    def _reply(self, message_id: str, cell: str) -> dict[str, Any]:
        while True:
            reply = self._received(self._client.get_shell_msg, cell)
            if reply["parent_header"].get("msg_id") == message_id:
                return reply

    def _received(self, get: Callable[..., dict[str, Any]], cell: str) -> dict[str, Any]:
        """Return the next message, and prod a silent kernel with another request.

        Before ipykernel 7.4, a request that arrives during a reply may wait for the next one
        (https://github.com/ipython/ipykernel/issues/1554).
        """
        for _ in range(TIMEOUT_S // _SILENT_S):
            try:
                return get(timeout=_SILENT_S)
            except queue.Empty:
                self._client.kernel_info()
        raise TimeoutError(f"The cell still runs after {TIMEOUT_S} s: {cell}")


@contextmanager
def notebook_kernel(stderr: IO[str] | None = None) -> Iterator[NotebookKernel]:
    """Start a notebook kernel and stop it when the context ends.

    It uses file sockets, because another process could take a free port first.
    """
    with tempfile.TemporaryDirectory(prefix="kernel-") as run:
        manager = KernelManager(transport="ipc", connection_file=f"{run}/kernel.json")
        manager.start_kernel(stderr=stderr)
        client = manager.client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=TIMEOUT_S)
            yield NotebookKernel(manager, client)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=False)
            manager.cleanup_resources()
