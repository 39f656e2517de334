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
from agentdouble.sandbox.session import SandboxSession
from agentdouble.sandbox.session_snapshots import SessionSnapshots
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.settings import Settings
from agentdouble.state import Store
from tests.agentdouble.sandbox import test_given_up
from tests.agentdouble.sandbox.test_given_up import leave_everywhere

pytestmark = [pytest.mark.slow, pytest.mark.needs("files", "pid_namespace")]

TOOL = "t-sandbox"


class Sandbox:
    """The sessions and snapshots of a double, with one session that has run code."""

    def __init__(self) -> None:
        settings = Settings.load(pool_size=0)
        self.sessions = SandboxSessions(Clock(), settings)
        self.snapshots = SessionSnapshots(
            Clock(), settings, self.sessions, Store(), lambda _tool_id: True
        )

    async def begin(self) -> SandboxSession:
        session = await self.sessions.get_or_create(TOOL, "u")
        assert "" == await self.output(session, "x = 1")
        return session

    async def output(self, session: SandboxSession, code: str = "print(x)") -> str:
        result = await self.sessions.execute(session, code, "python3", 30)
        assert "ok" == result.status, result
        return "".join(output.text or "" for output in result.outputs)

    async def close(self) -> None:
        await self.snapshots.close()
        await self.sessions.close()


def with_sessions(test: Callable[[Sandbox], Awaitable[None]]) -> None:
    test_given_up.OTHERS[:] = psutil.Process().children()

    async def run_test() -> None:
        with ledger.using(ledger.Ledger(None)):
            sandbox = Sandbox()
            try:
                await test(sandbox)
            finally:
                await sandbox.close()

    asyncio.run(run_test())
    assert [] == test_given_up.own_processes()


def test_a_cancelled_snapshot_is_kept_whole_or_not_at_all() -> None:
    """The session goes on, and a kept snapshot can be deleted."""

    async def test(sandbox: Sandbox) -> None:
        session = await sandbox.begin()

        async def take() -> None:
            try:
                await sandbox.snapshots.take(session)
            finally:
                await sandbox.snapshots.reset()

        async def look(_: None) -> None:
            assert "1\n" == await sandbox.output(session)

        assert await leave_everywhere(take, look, "when its answer is there") > 1

    with_sessions(test)


def test_a_cancelled_new_instance_is_removed() -> None:
    """No processes or files remain."""

    async def test(sandbox: Sandbox) -> None:
        source = await sandbox.begin()
        snapshot = await sandbox.snapshots.take(source)
        places = await leave_everywhere(
            lambda: sandbox.snapshots.resume(snapshot, None, new_instance=True),
            lambda session: sandbox.sessions.destroy(session, "the test is over"),
            "while it waits, and again",
        )
        await sandbox.sessions.settle()
        assert places > 1
        assert (source,) == sandbox.sessions.living()

    with_sessions(test)


@pytest.mark.parametrize("steps", [3, 40])
def test_a_session_that_ends_meanwhile_fails_and_leaves_nothing(steps: int) -> None:
    """This applies to taking a snapshot and to restoring one."""

    async def test(sandbox: Sandbox) -> None:
        snapshots = sandbox.snapshots
        for resumes in (False, True):
            source = await sandbox.begin()
            if resumes:
                snapshot = await snapshots.take(source)
                work: Awaitable[object] = snapshots.resume(snapshot, None, new_instance=False)
            else:
                work = snapshots.take(source)
            task = asyncio.ensure_future(work)
            for _ in range(steps):
                await asyncio.sleep(0.001)
            await sandbox.sessions.destroy(source, "the test ends it")
            await asyncio.wait({task}, timeout=30)
            error = task.exception()
            assert error is None or "the test ends it" in str(error)
            assert error is None or isinstance(error, SandboxError)
            if isinstance(error, SnapshotRefusedError):
                assert "InvalidSnapshot.InstanceTerminating" == error.code
        assert () == sandbox.sessions.living()

    with_sessions(test)
