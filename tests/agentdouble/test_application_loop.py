from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import TypeVar

import pytest

from agentdouble.application_loop import (
    ROOM,
    ApplicationExitError,
    ApplicationLoop,
    CrossLoopQueue,
)

T = TypeVar("T")

variable: ContextVar[str] = ContextVar("variable", default="default")


def in_loop(body: Callable[[ApplicationLoop], Awaitable[T]], *, started: bool = True) -> T:
    """Run ``body`` with an application loop; it is stopped afterwards."""

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


def test_coroutines_run_in_a_thread_of_their_own() -> None:
    """A started loop runs beside the caller's, and its thread ends with it."""
    started = in_loop(lambda loop: loop.run(thread()))

    assert ("agentdouble-app", False) == (started.name, started.is_alive())


def test_the_caller_s_context_is_theirs() -> None:
    """Context variables reach the application."""

    async def body(loop: ApplicationLoop) -> str:
        async def read() -> str:
            return variable.get()

        variable.set("set")
        return await loop.run(read())

    assert "set" == in_loop(body)


def test_exceptions_come_back() -> None:
    """What the coroutine raises, its caller gets."""

    async def body(loop: ApplicationLoop) -> None:
        async def fail() -> None:
            raise ValueError("boom")

        with pytest.raises(ValueError, match="boom"):
            await loop.run(fail())

    in_loop(body)


@pytest.mark.parametrize("started", [True, False])
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_the_loop_survives_an_exit(error: BaseException, started: bool) -> None:
    """sys.exit() ends its request and nothing else."""

    async def body(loop: ApplicationLoop) -> str:
        async def leave() -> None:
            raise error

        with pytest.raises(ApplicationExitError, match=type(error).__name__):
            await loop.run(leave())
        return await loop.run(thread_name())

    assert ("agentdouble-app" if started else "MainThread") == in_loop(body, started=started)


def test_cancelling_the_caller_cancels_the_coroutine() -> None:
    """A request that is given up does not go on."""

    async def body(loop: ApplicationLoop) -> bool:
        begun, cancelled = threading.Event(), threading.Event()

        async def wait() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        task = asyncio.ensure_future(loop.run(wait()))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        return await asyncio.to_thread(cancelled.wait, 30)

    assert in_loop(body)


@pytest.mark.parametrize("started", [True, False])
def test_items_come_in_order_and_in_one_task(started: bool) -> None:
    """An iterator runs in one task from beginning to end, however many items it has."""
    tasks = set()

    async def numbers() -> AsyncIterator[int]:
        for number in range(100):
            tasks.add(asyncio.current_task())
            yield number

    async def body(loop: ApplicationLoop) -> list[int]:
        return [number async for number in loop.iterate(numbers())]

    assert list(range(100)) == in_loop(body, started=started)
    assert 1 == len(tasks)


def test_an_item_comes_before_the_next_is_made() -> None:
    """Items are handed over as they are produced."""

    async def body(loop: ApplicationLoop) -> list[str]:
        taken = threading.Event()

        async def items() -> AsyncIterator[str]:
            yield "first"
            yield "second" if await asyncio.to_thread(taken.wait, 30) else "too late"

        seen = []
        async for item in loop.iterate(items()):
            seen.append(item)
            taken.set()
        return seen

    assert ["first", "second"] == in_loop(body)


def test_a_slow_consumer_slows_the_iterator() -> None:
    """An iterator without end does not fill the memory."""
    made = []

    async def endless() -> AsyncIterator[int]:
        while True:
            made.append(1)
            yield 1

    async def body(loop: ApplicationLoop) -> None:
        iterator = loop.iterate(endless())
        await iterator.__anext__()
        for _ in range(20):
            await loop.run(asyncio.sleep(0))
        await iterator.aclose()

    in_loop(body)

    assert len(made) < 50


@pytest.mark.parametrize("started", [True, False])
def test_closing_ends_the_iterator(started: bool) -> None:
    """Who stops taking lets the iterator clean up."""
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


def test_queued_items_arrive_in_order_and_none_is_lost() -> None:
    """However the two threads take turns."""
    count = 20_000

    async def main() -> list[int]:
        loop = ApplicationLoop()
        await loop.start()
        out: CrossLoopQueue[int] = CrossLoopQueue()

        async def make() -> None:
            for number in range(count):
                out.put(number)
                if out.full:
                    await out.room()

        making = asyncio.ensure_future(loop.run(make()))
        taken: list[int] = []
        while len(taken) < count:
            taken += await out.take()
        await making
        await loop.stop()
        return taken

    assert list(range(count)) == asyncio.run(main())


def test_the_producer_waits_for_the_consumer() -> None:
    """It is never more than ROOM ahead."""

    async def main() -> tuple[int, int]:
        loop = ApplicationLoop()
        await loop.start()
        out: CrossLoopQueue[int] = CrossLoopQueue()
        made, waits = [], threading.Event()

        async def make() -> None:
            for number in range(3 * ROOM):
                out.put(number)
                made.append(number)
                if out.full:
                    waits.set()
                    await out.room()

        making = asyncio.ensure_future(loop.run(make()))
        await asyncio.to_thread(waits.wait, 30)
        ahead, taken = len(made), 0
        while taken < 3 * ROOM:
            taken += len(await out.take())
        await making
        await loop.stop()
        return ahead, taken

    assert (ROOM, 3 * ROOM) == asyncio.run(main())
