"""Cancelled session snapshots, and sessions that end during one, leave nothing behind."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable

import psutil
import pytest

if sys.platform != "linux":
    pytest.skip("only Linux copies kernels", allow_module_level=True)

from agentdouble.core import ledger
from agentdouble.core.clock import Clock
from agentdouble.errors import SandboxError, SnapshotRefusedError
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.instances import Instances
from agentdouble.sandbox.session_snapshots import SessionSnapshots
from agentdouble.settings import Settings
from tests.agentdouble.sandbox import test_given_up
from tests.agentdouble.sandbox.test_given_up import leave_everywhere

pytestmark = [pytest.mark.slow, pytest.mark.needs("files", "pid_namespace")]

TOOL = "t-sandbox"


class Sessions:
    """The sessions and snapshots of a double, with one session that has run code."""

    def __init__(self) -> None:
        settings = Settings.load(pool_size=0)
        self.instances = Instances(Clock(), settings)
        self.snapshots = SessionSnapshots(Clock(), settings, self.instances)

    async def begin(self) -> Instance:
        instance = await self.instances.get_or_create(TOOL, "u")
        assert "" == await self.output(instance, "x = 1")
        return instance

    async def output(self, instance: Instance, code: str = "print(x)") -> str:
        result = await self.instances.execute(instance, code, "python3", 30)
        assert "ok" == result.status, result
        return "".join(output.text or "" for output in result.outputs)

    async def close(self) -> None:
        await self.snapshots.close()
        await self.instances.close()


def with_sessions(test: Callable[[Sessions], Awaitable[None]]) -> None:
    test_given_up.OTHERS[:] = psutil.Process().children()

    async def run_test() -> None:
        with ledger.using(ledger.Ledger(None)):
            sessions = Sessions()
            try:
                await test(sessions)
            finally:
                await sessions.close()

    asyncio.run(run_test())
    assert [] == test_given_up.own_processes()


def test_a_cancelled_snapshot_is_kept_whole_or_not_at_all() -> None:
    """The session goes on, and a kept snapshot can be deleted."""

    async def test(sessions: Sessions) -> None:
        instance = await sessions.begin()

        async def take() -> None:
            try:
                await sessions.snapshots.take(instance)
            finally:
                await sessions.snapshots.reset()

        async def look(_: None) -> None:
            assert "1\n" == await sessions.output(instance)

        assert await leave_everywhere(take, look, "when its answer is there") > 1

    with_sessions(test)


def test_a_cancelled_new_instance_is_removed() -> None:
    """No processes or files remain."""

    async def test(sessions: Sessions) -> None:
        source = await sessions.begin()
        snapshot = await sessions.snapshots.take(source)
        places = await leave_everywhere(
            lambda: sessions.snapshots.resume(snapshot, None, new_instance=True),
            lambda instance: sessions.instances.destroy(instance, "the test is over"),
            "while it waits, and again",
        )
        await sessions.instances.settle()
        assert places > 1
        assert (source,) == sessions.instances.living()

    with_sessions(test)


@pytest.mark.parametrize("steps", [3, 40])
def test_a_session_that_ends_meanwhile_fails_and_leaves_nothing(steps: int) -> None:
    """This applies to taking a snapshot and to restoring one."""

    async def test(sessions: Sessions) -> None:
        snapshot = await sessions.snapshots.take(await sessions.begin())

        async def resume(source: Instance) -> object:
            return await sessions.snapshots.resume(snapshot, None, new_instance=False)

        for work in (sessions.snapshots.take, resume):
            source = await sessions.begin()
            task = asyncio.ensure_future(work(source))
            for _ in range(steps):
                await asyncio.sleep(0.001)
            await sessions.instances.destroy(source, "the test ends it")
            await asyncio.wait({task}, timeout=30)
            error = task.exception()
            assert error is None or "the test ends it" in str(error)
            assert error is None or isinstance(error, SandboxError)
            if isinstance(error, SnapshotRefusedError):
                assert "InvalidSnapshot.InstanceTerminating" == error.code
        assert () == sessions.instances.living()

    with_sessions(test)
