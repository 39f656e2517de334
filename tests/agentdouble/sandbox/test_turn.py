from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from agentdouble.core import ledger
from agentdouble.core.ledger import Ledger
from agentdouble.errors import SandboxError
from agentdouble.sandbox.turn import ExecutionTurn


class Executions:
    """Executions that take a turn and hold it until they are told to leave."""

    def __init__(self) -> None:
        self.changes: list[str] = []
        self.turn = ExecutionTurn("s1", self.changes.append)
        self.holding: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}

    async def arrive(self, name: str) -> asyncio.Task[None]:
        """Start an execution; return its task when it holds the turn or waits for it."""
        self.gates[name] = asyncio.Event()
        task = asyncio.ensure_future(self._hold(name))
        await settled()
        return task

    async def _hold(self, name: str) -> None:
        async with self.turn.taken():
            self.holding.append(name)
            await self.gates[name].wait()

    async def leave(self, name: str) -> None:
        self.gates[name].set()
        await settled()


async def settled() -> None:
    """Let every task go on until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


def with_executions(test: Callable[[Executions], Awaitable[None]], **choices: str) -> None:
    async def run() -> None:
        with ledger.using(Ledger(choices)):
            await test(Executions())

    asyncio.run(run())


def test_the_turn_is_handed_over_in_order_of_arrival() -> None:
    async def test(executions: Executions) -> None:
        for name in ("one", "two", "three"):
            await executions.arrive(name)
        held = [[*executions.holding]]
        for name in ("one", "two", "three"):
            await executions.leave(name)
            held.append([*executions.holding])

        assert [["one"], ["one", "two"], ["one", "two", "three"]] == held[:3]
        assert ["busy", "busy", "busy", "idle"] == executions.changes
        assert not executions.turn.busy

    with_executions(test)


def test_one_that_gives_up_waiting_leaves_the_turn_to_the_next() -> None:
    async def test(executions: Executions) -> None:
        await executions.arrive("one")
        second = await executions.arrive("two")
        await executions.arrive("three")
        second.cancel()
        await executions.leave("one")

        assert ["one", "three"] == executions.holding
        assert executions.turn.busy
        await executions.leave("three")
        assert "idle" == executions.changes[-1]

    with_executions(test)


def test_a_turn_is_busy_as_soon_as_an_execution_has_arrived() -> None:
    async def test(executions: Executions) -> None:
        taking = executions.turn.taken()
        before = executions.turn.busy
        async with taking:
            during = executions.turn.busy

        assert (False, True, False) == (before, during, executions.turn.busy)

    with_executions(test)


@pytest.mark.parametrize("choice", ["queued", "refused"])
def test_the_ledger_decides_if_a_second_execution_waits(choice: str) -> None:
    """U-EXEC-CONCURRENCY; a free turn relies on no answer."""

    async def test(executions: Executions) -> None:
        executions.turn.check_free()
        await executions.arrive("one")
        if choice == "queued":
            executions.turn.check_free()
        else:
            with pytest.raises(SandboxError, match="'s1' is running code"):
                executions.turn.check_free()
        await executions.leave("one")
        executions.turn.check_free()

    with_executions(test, **{"U-EXEC-CONCURRENCY": choice})


def test_waiting_for_the_end_of_executions_does_not_make_a_turn_busy() -> None:
    async def test(executions: Executions) -> None:
        await executions.arrive("one")
        passed: list[bool] = []

        async def wait() -> None:
            async with executions.turn.over():
                passed.append(executions.turn.busy)

        waiting = asyncio.ensure_future(wait())
        await settled()
        assert [] == passed
        await executions.leave("one")
        await waiting
        assert [False] == passed
        assert ["busy", "idle"] == executions.changes

    with_executions(test)
