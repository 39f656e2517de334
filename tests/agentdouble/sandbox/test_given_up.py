"""Cancelled starts of kernels and workbenches leave nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import os
import sys
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, Literal, TypeVar, get_args

import psutil
import pytest

if sys.platform != "linux":
    pytest.skip("only Linux forks kernels", allow_module_level=True)

from agentdouble.core import ledger
from agentdouble.core.clock import Clock
from agentdouble.errors import KernelStartError, SandboxError
from agentdouble.sandbox.kernel_pool import KernelPool
from agentdouble.sandbox.languages import JAVASCRIPT, PYTHON
from agentdouble.sandbox.process_starter import ProcessStarter
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.settings import Settings
from tests.agentdouble.processes.forking import forked_by

pytestmark = pytest.mark.slow

T = TypeVar("T")
When = Literal["while it waits", "while it waits, and again", "when its answer is there"]

PATIENCE_S = 60
PAUSE_S = 0.005  # between two looks: what is ending needs the processor
OTHERS: list[psutil.Process] = []  # what other tests have running
_OFTEN = 20


class LeavesAt(Generic[T]):
    """Work that is cancelled at its n-th await, during the wait or just after it."""

    def __init__(self, work: Awaitable[T], nth: int, when: When) -> None:
        self._work, self._nth, self._when = work, nth, when
        self.has_left = False

    def __await__(self) -> Generator[Any, Any, T]:
        waiting, error = self._work.__await__(), None
        for n in itertools.count():
            try:
                future = next(waiting) if error is None else waiting.throw(error)
            except StopIteration as end:
                result: T = end.value
                return result
            if n == self._nth:
                self._leave(future)
            error = yield from _passed_on(future)
        raise AssertionError("unreachable")

    def _leave(self, future: asyncio.Future[Any] | None) -> None:
        self.has_left = True
        task = asyncio.current_task()
        assert task is not None
        if future is None or self._when != "when its answer is there":
            _cancel(task, _OFTEN if self._when.endswith("again") else 1)
        else:
            future.add_done_callback(lambda _: task.cancel())


def _cancel(task: asyncio.Task[Any], times: int) -> None:
    """Cancel a task in each of the next turns of its loop."""
    if times:
        asyncio.get_running_loop().call_soon(task.cancel)
        asyncio.get_running_loop().call_soon(_cancel, task, times - 1)


def _passed_on(future: Any) -> Generator[Any, Any, BaseException | None]:
    try:
        yield future
    except BaseException as error:
        return error
    return None


async def come_to(work: Awaitable[T]) -> T:
    return await work


async def leave_everywhere(
    start: Callable[[], Awaitable[T]], end: Callable[[T], Awaitable[object]], when: When
) -> int:
    """Cancel a start at each await and return how many there are."""
    gc.collect()  # what other tests have let go of is not closed during this one
    await end(await start())  # what only the first one opens is open now
    before = await at_rest(None)
    for nth in itertools.count():
        leaving = LeavesAt(start(), nth, when)
        task = asyncio.ensure_future(come_to(leaving))
        await asyncio.wait({task}, timeout=PATIENCE_S)
        if not task.cancelled():  # it was there before, and whoever asked has it
            await end(task.result())
        now = await at_rest(before)
        assert has_no_more(now, before), f"left where it waited for the {nth}th time"
        before = before[0], now[1]
        if not leaving.has_left:
            return nth
    raise AssertionError("unreachable")


async def at_rest(expected: tuple[int, int] | None) -> tuple[int, int]:
    """Return the counts of processes and descriptors once they are no more than expected.

    There can be fewer, as other tests' doubles close idle ones. Without an expectation, wait until
    they no longer change.
    """
    until = asyncio.get_running_loop().time() + PATIENCE_S
    before = None
    while True:
        await asyncio.sleep(PAUSE_S)
        counts = len(own_processes()), len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (on the loop)
        done = counts == before if expected is None else has_no_more(counts, expected)
        if done or asyncio.get_running_loop().time() > until:
            return counts
        before = counts


def own_processes() -> list[psutil.Process]:
    """Return the living processes of this test's kernels.

    A kernel reaps an ended template only when its next snapshot is taken.
    """
    living = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            family = [] if child in OTHERS else [child, *child.children(recursive=True)]
            living += [process for process in family if _lives(process)]
    return living


def _lives(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def has_no_more(current: tuple[int, int], expected: tuple[int, int]) -> bool:
    return all(count <= most for count, most in zip(current, expected, strict=True))


def with_kernels(
    test: Callable[[KernelPool, ProcessStarter], Awaitable[None]], **settings: Any
) -> None:
    OTHERS[:] = psutil.Process().children()

    async def run_test() -> None:
        with ledger.using(ledger.Ledger(None)):
            starter = ProcessStarter(Settings.load(**{"pool_size": 0, **settings}))
            kernels = KernelPool(starter)
            try:
                await test(kernels, starter)
            finally:
                await kernels.close()
                await starter.close()

    asyncio.run(run_test())


WHEN = pytest.mark.parametrize("when", get_args(When))


@WHEN
@pytest.mark.parametrize("language", [PYTHON, JAVASCRIPT], ids=lambda language: language.name)
def test_a_cancelled_kernel_start_leaves_nothing(language: Any, when: When) -> None:
    """Neither processes nor sockets remain."""

    async def test(kernels: KernelPool, starter: ProcessStarter) -> None:
        workspace = starter.workspace()
        places = await leave_everywhere(
            lambda: kernels.start(language, workspace),
            lambda kernel: kernel.kill("the test is over"),
            when,
        )
        launching = await leave_everywhere(
            lambda: kernels._launch(language, workspace, ()),
            lambda kernel: kernel.kill("the test is over"),
            when,
        )
        assert places > 1
        assert launching >= 1

    with_kernels(test)


@WHEN
def test_a_cancelled_workbench_start_leaves_nothing(when: When) -> None:
    """Neither processes nor sockets remain."""

    async def test(_kernels: KernelPool, starter: ProcessStarter) -> None:
        workspace = starter.workspace()
        places = await leave_everywhere(
            lambda: starter.workbench(workspace),
            lambda workbench: workbench.kill("the test is over"),
            when,
        )
        assert places >= 1

    with_kernels(test)


def fork_server() -> psutil.Process:
    """Return this process's only fork server."""
    (guardian,) = (process for process in psutil.Process().children() if process not in OTHERS)
    (server,) = guardian.children()
    return server


async def end_all(starts: list[asyncio.Task[Any]]) -> list[BaseException]:
    """End what has started and return the errors of the rest."""
    await asyncio.wait(starts, timeout=PATIENCE_S)
    for start in starts:
        if start.exception() is None:
            await start.result().kernel.kill("the test is over")
            start.result().workspace.remove()
    return [error for error in (start.exception() for start in starts) if error is not None]


@pytest.mark.parametrize("forked", [0, 1, 5])
def test_killing_the_fork_server_leaves_no_process(forked: int) -> None:
    """Starts without a process retry on the next server; the others fail."""

    async def test(kernels: KernelPool, _starter: ProcessStarter) -> None:
        await end_all([asyncio.ensure_future(kernels._make())])
        before = await at_rest(None)
        starts = [asyncio.ensure_future(kernels._make()) for _ in range(10)]
        server = fork_server()
        while len(forked_by(server)) < forked:  # noqa: ASYNC110 (nobody sets an event for tests)
            await asyncio.sleep(0)
        server.kill()

        failures = await end_all(starts)

        assert all(isinstance(failure, KernelStartError) for failure in failures), failures
        assert [] == await end_all([asyncio.ensure_future(kernels._make())])
        assert has_no_more(await at_rest(before), before)

    with_kernels(test)


@pytest.mark.parametrize("meanwhile", ["ended", "paused"])
def test_a_further_kernel_is_ended_if_its_session_cannot_use_it(meanwhile: str) -> None:
    """Nobody has it yet when the session ends or is paused, so nobody else would end it."""
    OTHERS[:] = psutil.Process().children()

    async def run_test() -> None:
        with ledger.using(ledger.Ledger(None)):
            sessions = SandboxSessions(Clock(), Settings.load(pool_size=0))
            session = await sessions.get_or_create("t-sandbox", "u")
            await session.execute("1", "python3", 30)
            before = await at_rest(None)
            processes: Any = session.processes
            opening = asyncio.ensure_future(processes.named_kernels.open("n", PYTHON))
            await asyncio.sleep(0)
            if meanwhile == "paused":
                sessions.pause(session)
            else:
                await sessions.destroy(session, "the test ends it")
            with pytest.raises(SandboxError, match=r"paused|the test ends it"):
                await opening
            assert has_no_more(await at_rest(before), before)
            await sessions.close()

    asyncio.run(run_test())
