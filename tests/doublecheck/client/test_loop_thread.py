"""Run work in a thread while a listener receives its outputs."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from doublecheck.client import loop_thread
from doublecheck.results import LiveOutput
from doublecheck.values.executions import OnOutput


def test_a_listener_error_after_the_work_has_ended_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loop is already closed, so nothing can be cancelled."""
    closed, cancelled = threading.Event(), threading.Event()

    class Loop(asyncio.SelectorEventLoop):
        def close(self) -> None:
            super().close()
            closed.set()
            cancelled.wait()

        def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> asyncio.Handle:
            if closed.is_set():
                cancelled.set()
            return super().call_soon_threadsafe(*args, **kwargs)

    async def work(on_output: OnOutput) -> None:
        on_output(LiveOutput("stream", {"name": "stdout", "text": "last"}))

    def fail(_output: LiveOutput) -> None:
        closed.wait()
        raise LookupError("of the listener")

    monkeypatch.setattr(asyncio, "new_event_loop", Loop)
    with pytest.raises(LookupError, match="of the listener"):
        loop_thread.run(work, fail)
