from __future__ import annotations

import asyncio
import threading

import pytest

from agentdouble.agents import loops as agents_loops
from agentdouble.agents.loops import AgentLoops


def beside() -> set[threading.Thread]:
    """Return the threads in which agents run."""
    return {one for one in threading.enumerate() if one.name == "agentdouble-app"}


def test_a_loop_that_is_being_made_ends_with_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was about to move to a fresh loop leaves none behind."""
    monkeypatch.setattr(agents_loops, "BLOCKED_AFTER_S", 0)
    begun, release = threading.Event(), threading.Event()

    async def block() -> None:
        begun.set()
        release.wait(30)

    async def main() -> None:
        loops = AgentLoops()
        await loops.submit("a", block)
        await asyncio.to_thread(begun.wait, 30)
        await loops.submit("a", block)
        for _ in range(3):  # it is held, so another loop is begun
            await asyncio.sleep(0)
        release.set()
        await loops.close()

    before = beside()
    asyncio.run(main())

    assert set() == beside() - before


def test_what_has_just_moved_is_waited_for_once() -> None:
    """Its end has not been noted yet, as close() waits for what moves."""

    async def main() -> None:
        loops = AgentLoops()
        moved = asyncio.get_running_loop().create_future()
        moved.set_result(None)
        loops._moving.add(moved)  # type: ignore[arg-type]
        moved.add_done_callback(loops._moving.discard)  # type: ignore[arg-type]
        await loops.close()

    # in a thread, because a loop that spins cannot be cancelled
    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    thread.join(20)

    assert not thread.is_alive()
