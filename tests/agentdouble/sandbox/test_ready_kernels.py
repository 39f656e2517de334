"""What the pool of ready kernels says when it cannot have one."""

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


def test_a_start_that_fails_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever needs a kernel hears the same."""
    asyncio.run(_close_when_it_starts_one(the_start_waits=False))

    expected = "Starting a ready kernel failed: The Python kernel did not start: no room"
    assert [expected] == caplog.messages


def test_whoever_stops_a_double_hears_of_no_missing_kernel(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A start may hear that the double has stopped before it is cancelled, and fail of that."""
    asyncio.run(_close_when_it_starts_one(the_start_waits=True))

    assert [] == caplog.messages
