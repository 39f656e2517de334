"""A real ipykernel, as a notebook has one: cells are run in it and what they show is kept."""

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
import agentdouble.sandbox.questions, agentdouble.sandbox.kernel, doublecheck.notebook.magics.completion
agentdouble.sandbox.questions.PATIENCE_S = doublecheck.notebook.magics.completion._PATIENCE_S = 60
agentdouble.sandbox.kernel.INTERRUPT_GRACE_S = 60
"""
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Ran:
    """What a cell showed: the messages of its outputs, in order."""

    messages: tuple[tuple[str, dict[str, Any]], ...]

    @property
    def stdout(self) -> str:
        """What it printed."""
        return self._stream("stdout")

    @property
    def stderr(self) -> str:
        """What it printed to stderr: warnings and logs are there."""
        return self._stream("stderr")

    @property
    def bundles(self) -> list[dict[str, Any]]:
        """The MIME bundles of what it returned or displayed."""
        kinds = ("display_data", "execute_result")
        return [content["data"] for kind, content in self.messages if kind in kinds]

    @property
    def html(self) -> str:
        """The HTML of all that."""
        return "".join(bundle.get("text/html", "") for bundle in self.bundles)

    @property
    def text(self) -> str:
        """The plain text of the last value that it returned or displayed."""
        return str(self.bundles[-1]["text/plain"])

    @property
    def error(self) -> str | None:
        """Its traceback without colours, if it failed."""
        tracebacks = [content["traceback"] for kind, content in self.messages if kind == "error"]
        return _ANSI.sub("", "\n".join(tracebacks[-1])) if tracebacks else None

    def _stream(self, name: str) -> str:
        streams = (content for kind, content in self.messages if kind == "stream")
        return "".join(content["text"] for content in streams if content["name"] == name)


class NotebookKernel:
    """The kernel of a notebook that has been opened."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self._manager = manager
        self._client = client

    def run(self, cell: str) -> Ran:
        """Run a cell to its end and return what it showed."""
        return Ran(tuple(self.running(cell)))

    def running(self, cell: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Run a cell and yield the messages of its outputs as they arrive."""
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
        """Interrupt the cell that runs, as the notebook's stop button does."""
        self._manager.interrupt_kernel()

    def restart(self) -> None:
        """Restart the kernel, as the notebook's button does, and return when it is ready."""
        self._manager.restart_kernel(now=False)
        self._client.wait_for_ready(timeout=TIMEOUT_S)

    def complete(self, code: str, position: int | None = None) -> list[str]:
        """Return what the tab key offers in a cell, at its end unless told otherwise."""
        message_id = self._client.complete(code, position)
        return list(self._reply(message_id, code)["content"]["matches"])

    def _reply(self, message_id: str, cell: str) -> dict[str, Any]:
        while True:
            reply = self._received(self._client.get_shell_msg, cell)
            if reply["parent_header"].get("msg_id") == message_id:
                return reply

    def _received(self, get: Callable[..., dict[str, Any]], cell: str) -> dict[str, Any]:
        """Return the next message; a kernel that is silent is asked for something else, too.

        A request that arrives while ipykernel before 7.4 replies may lie there until the next
        one comes (https://github.com/ipython/ipykernel/issues/1554).
        """
        for _ in range(TIMEOUT_S // _SILENT_S):
            try:
                return get(timeout=_SILENT_S)
            except queue.Empty:
                self._client.kernel_info()
        raise TimeoutError(f"The cell still runs after {TIMEOUT_S} s: {cell}")


@contextmanager
def notebook_kernel(stderr: IO[str] | None = None) -> Iterator[NotebookKernel]:
    """Start the kernel of a notebook; it has ended when the context does.

    Its sockets are files: a port that was free might be another's when the kernel binds it.
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
