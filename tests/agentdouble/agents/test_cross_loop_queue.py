from __future__ import annotations

import asyncio
import threading

from agentdouble.agents.cross_loop_queue import ROOM, CrossLoopQueue
from agentdouble.application_loop import ApplicationLoop


def test_items_arrive_in_order_and_none_is_lost() -> None:
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


def test_the_maker_waits_for_the_taker() -> None:
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


def test_one_loop_can_be_both_sides() -> None:
    """The maker may live on the taker's loop."""

    async def main() -> list[str]:
        out: CrossLoopQueue[str] = CrossLoopQueue()
        asyncio.get_running_loop().call_soon(out.put, "item")
        return await out.take()

    assert ["item"] == asyncio.run(main())
