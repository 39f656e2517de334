"""Log messages of the pool of ready kernels when a start fails."""

from __future__ import annotations

import asyncio

import pytest

from agentdouble.errors import KernelStartError
from agentdouble.sandbox.ready_kernels import PooledKernel, ReadyKernels


async def _close_when_it_starts_one(*, the_start_waits: bool) -> None:
    started = asyncio.Event()

    async def make() -> PooledKernel:
        started.set()
        if not the_start_waits:
            raise KernelStartError("Python", "no room")
        try:
            return await asyncio.Future()
        except asyncio.CancelledError:
            raise KernelStartError("Python", "the double has stopped") from None

    ready = ReadyKernels(make, 2)
    ready.fill()
    await started.wait()
    await ready.close()


def test_a_failing_start_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(_close_when_it_starts_one(the_start_waits=False))

    expected = "Starting a ready kernel failed: The Python kernel did not start: no room"
    assert [expected] == caplog.messages


def test_stopping_the_double_logs_no_failed_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A start may fail because the double stops, before it is cancelled."""
    asyncio.run(_close_when_it_starts_one(the_start_waits=True))

    assert [] == caplog.messages
