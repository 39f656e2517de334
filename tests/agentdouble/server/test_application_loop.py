from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import TypeVar

import pytest

from agentdouble.server.application_loop import ApplicationExitError, ApplicationLoop
from agentdouble.server.cross_loop_queue import ROOM, CrossLoopQueue

T = TypeVar("T")

variable: ContextVar[str] = ContextVar("variable", default="default")


def in_loop(body: Callable[[ApplicationLoop], Awaitable[T]], *, started: bool = True) -> T:
    """Run ``body`` with an application loop, then stop the loop."""

    async def main() -> T:
        loop = ApplicationLoop()
        if started:
            await loop.start()
        try:
            return await body(loop)
        finally:
            await loop.stop()

    return asyncio.run(main())


async def thread() -> threading.Thread:
    return threading.current_thread()


async def thread_name() -> str:
    return threading.current_thread().name


@pytest.mark.parametrize("started", [True, False])
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_the_loop_survives_sys_exit(error: BaseException, started: bool) -> None:
    """It ends only its own request."""

    async def body(loop: ApplicationLoop) -> str:
        async def leave() -> None:
            raise error

        with pytest.raises(ApplicationExitError, match=type(error).__name__):
            await loop.run(leave())
        return await loop.run(thread_name())

    assert ("agentdouble-app" if started else "MainThread") == in_loop(body, started=started)


def test_cancelling_the_caller_cancels_the_coroutine() -> None:

    async def body(loop: ApplicationLoop) -> bool:
        started, cancelled = threading.Event(), threading.Event()

        async def wait() -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        task = asyncio.ensure_future(loop.run(wait()))
        await asyncio.to_thread(started.wait)
        task.cancel()
        return await asyncio.to_thread(cancelled.wait, 30)

    assert in_loop(body)


def test_a_slow_consumer_slows_the_iterator() -> None:
    """An endless iterator does not fill the memory."""
    created = []

    async def endless() -> AsyncIterator[int]:
        while True:
            created.append(1)
            yield 1

    async def body(loop: ApplicationLoop) -> None:
        iterator = loop.iterate(endless())
        await iterator.__anext__()
        for _ in range(20):
            await loop.run(asyncio.sleep(0))
        await iterator.aclose()

    in_loop(body)

    assert len(created) < 50


@pytest.mark.parametrize("started", [True, False])
def test_closing_ends_the_iterator(started: bool) -> None:
    """The iterator can clean up."""
    closed = threading.Event()

    async def items() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
                await asyncio.sleep(0)
        finally:
            closed.set()

    async def body(loop: ApplicationLoop) -> bool:
        iterator = loop.iterate(items())
        await iterator.__anext__()
        await iterator.aclose()
        return await asyncio.to_thread(closed.wait, 30)

    assert in_loop(body, started=started)


def test_the_producer_waits_for_the_consumer() -> None:
    """It is never more than ROOM ahead."""

    async def main() -> tuple[int, int]:
        loop = ApplicationLoop()
        await loop.start()
        out: CrossLoopQueue[int] = CrossLoopQueue()
        created, waits = [], threading.Event()

        async def make() -> None:
            for number in range(3 * ROOM):
                out.put(number)
                created.append(number)
                if out.full:
                    waits.set()
                    await out.wait_for_room()

        making = asyncio.ensure_future(loop.run(make()))
        await asyncio.to_thread(waits.wait, 30)
        ahead, created_before = len(created), 0
        while created_before < 3 * ROOM:
            created_before += len(await out.take())
        await making
        await loop.stop()
        return ahead, created_before

    assert (ROOM, 3 * ROOM) == asyncio.run(main())
