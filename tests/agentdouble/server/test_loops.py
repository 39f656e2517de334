from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import freezegun
import pytest
import time_machine

from agentdouble.server.loops import run


@pytest.mark.parametrize(
    "frozen",
    [
        pytest.param(lambda: freezegun.freeze_time("2030-01-01"), id="freezegun"),
        pytest.param(lambda: time_machine.travel("2030-01-01", tick=False), id="time-machine"),
    ],
)
def test_timers_run_while_the_clocks_are_frozen(
    frozen: Callable[[], AbstractContextManager[object]],
) -> None:
    """Only the wall clock stands still."""

    async def timers() -> bool:
        with frozen():
            before = time.time()
            await asyncio.sleep(0.01)
            return before == time.time()

    assert run(timers())


def test_run_cleans_up() -> None:
    """Running tasks are cancelled, and the loop is closed."""
    closed = []

    async def main() -> asyncio.AbstractEventLoop:
        async def forever() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                closed.append("cancelled")

        task = asyncio.ensure_future(forever())
        await asyncio.wait({task}, timeout=0.01)
        return asyncio.get_running_loop()

    loop = run(main())

    assert ["cancelled"] == closed
    assert loop.is_closed()
