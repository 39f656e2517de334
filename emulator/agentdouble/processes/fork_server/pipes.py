"""The pipes of a kernel's threads that print: closed when these have ended.

ipykernel looks for threads that have ended every ten seconds, also in a kernel that is idle. The
double counts what a session uses whenever one of its processes has done something, so that alone
costs it more than all the rest of hundreds of idle sessions.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from ipykernel.iostream import IOPubThread

_KERNELS_OWN = 2  # pipes of threads that do not end: the main one, the one of the control channel


class _Pipes(dict[threading.Thread, Any]):
    """The pipes by their threads; tells when there are more than the kernel's own."""

    def __init__(self, pipes: dict[threading.Thread, Any], tell: Callable[[], object]) -> None:
        super().__init__(pipes)
        self._tell = tell

    def __setitem__(self, thread: threading.Thread, pipe: Any) -> None:
        super().__setitem__(thread, pipe)
        if len(self) > _KERNELS_OWN:
            self._tell()


async def close_when_threads_end(iopub: IOPubThread) -> None:
    """Close the pipes of threads that have ended, as ipykernel does, while there may be any."""
    more, loop = asyncio.Event(), asyncio.get_running_loop()
    pipes = _Pipes(iopub._event_pipes, lambda: loop.call_soon_threadsafe(more.set))
    iopub._event_pipes = pipes
    while True:
        more.clear()
        if len(pipes) <= _KERNELS_OWN:
            await more.wait()
        await asyncio.sleep(iopub._event_pipe_gc_seconds)
        await iopub._event_pipe_gc()  # type: ignore[no-untyped-call]
