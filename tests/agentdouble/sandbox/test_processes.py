"""The promises of ``Processes``, by name: both implementations keep them, with real kernels."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import psutil
import pytest

from agentdouble import Clock, __version__
from agentdouble.core import ledger
from agentdouble.core.ledger import Ledger
from agentdouble.errors import (
    InstanceEndedError,
    NotBuiltError,
    SandboxError,
    SnapshotRefusedError,
)
from agentdouble.sandbox import languages
from agentdouble.sandbox.nodes.node_placement import NodePlacement
from agentdouble.sandbox.placement import LocalPlacement, Placement
from agentdouble.sandbox.result import ExecutionResult
from agentdouble.sandbox.session import SandboxSession
from agentdouble.sandbox.session_processes import Snapshot
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.settings import Settings

TOOL = "t-sandbox"
OUTPUT_LIMIT = 100_000
LONG_S = 60
HANG = "import time\nprint('begun', flush=True)\nfor _ in range(6000): time.sleep(0.01)"

Check = Callable[[SandboxSession], Awaitable[None]]


class Place:
    """Sessions whose processes are all in one place, on a loop of their own."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._loop = asyncio.new_event_loop()
        self._names = itertools.count()
        self._ledger = Ledger()
        self.sessions = self._loop.run_until_complete(self._open())

    async def _open(self) -> SandboxSessions:
        settings = Settings.load(
            pool_size=0,
            output_limit=OUTPUT_LIMIT,
            nodes="local://1" if self.kind == "node" else None,
        )
        placement: Placement = LocalPlacement(settings)
        if self.kind == "node":
            placement = NodePlacement(settings, self._ledger, __version__)
        placement.start()
        return SandboxSessions(Clock(), settings, placement=placement)

    def run(self, check: Check) -> None:
        """Run a check with a new session, and end the session."""

        async def within() -> None:
            with ledger.using(self._ledger):
                session = await self.sessions.get_or_create(TOOL, f"s{next(self._names)}")
                try:
                    await asyncio.wait_for(check(session), 2 * LONG_S)
                finally:
                    await self.sessions.destroy(session, "the check is over")

        self._loop.run_until_complete(within())

    def close(self) -> None:
        self._loop.run_until_complete(self.sessions.close())
        self._loop.close()


@pytest.fixture(scope="module", params=["local", "node"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    place = Place(request.param)
    yield place
    place.close()


async def run(session: SandboxSession, code: str, **options: Any) -> ExecutionResult:
    return await session.execute(code, **{"language": "python3", "timeout_s": LONG_S, **options})


async def printed(session: SandboxSession, code: str, **options: Any) -> str:
    result = await run(session, code, **options)
    assert "ok" == result.status, result
    return "".join(output.text or "" for output in result.outputs)


async def bash(place: Place, session: SandboxSession, command: str) -> dict[str, Any]:
    body = {"command": command, "timeout": LONG_S}
    publisher = place.sessions.feed.publisher(session.key)
    return (await session.processes.exec_bash(body, publisher))["data"]


@contextlib.asynccontextmanager
async def running(
    place: Place, session: SandboxSession, code: str
) -> AsyncIterator[asyncio.Task[ExecutionResult]]:
    """Run code, and yield its task when its first output has arrived."""
    with place.sessions.feed.listen(session.key) as listener:
        publisher = place.sessions.feed.publisher(session.key)
        task = asyncio.ensure_future(run(session, code, publisher=publisher))
        async for event in listener.events():
            if event.kind == "output":
                break
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait({task})


def living(pids: tuple[int, ...]) -> list[int]:
    """Return those of some processes that have not ended."""
    found = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    return [p.pid for p in found if p.status() != psutil.STATUS_ZOMBIE]


def test_nothing_runs_before_it_is_needed(place: Place) -> None:
    """Questions and an interrupt start nothing."""

    async def check(session: SandboxSession) -> None:
        processes = session.processes
        completion = await processes.complete("pri", 3, languages.PYTHON)
        variables = await processes.list_variables()
        interrupted = await processes.interrupt()

        assert ((), "none", ()) == (completion.matches, variables.state, interrupted)
        assert ((), None, ()) == (processes.pids, processes.home, processes.directories)
        assert {} == processes.kernels
        assert 0 == session.executions

    place.run(check)


def test_each_language_keeps_its_state_and_all_share_the_files(place: Place) -> None:
    async def check(session: SandboxSession) -> None:
        await printed(session, "x = 41; open('f', 'w').write('text').__class__")
        await printed(session, "let y = 1", language="javascript")

        assert "42\n" == await printed(session, "print(x + 1)")
        assert "2\n" == await printed(session, "console.log(y + 1)", language="javascript")
        assert "text" == (await bash(place, session, "cat f"))["stdout"]
        assert 4 == session.executions
        assert session.processes.home is not None
        assert len(session.processes.pids) >= 2

    place.run(check)


def test_an_error_of_the_code_is_a_result(place: Place) -> None:
    async def check(session: SandboxSession) -> None:
        result = await run(session, "1 / 0")

        assert ("error", "ZeroDivisionError", False) == (
            result.status,
            result.outputs[-1].ename,
            result.context_lost,
        )

    place.run(check)


def test_a_timeout_interrupts_the_code_and_keeps_the_state(place: Place) -> None:
    async def check(session: SandboxSession) -> None:
        await printed(session, "x = 1")
        result = await run(session, HANG, timeout_s=0.5)

        assert ("timeout", False) == (result.status, result.context_lost)
        assert "1\n" == await printed(session, "print(x)")

    place.run(check)


def test_code_that_ignores_its_interrupt_is_killed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentdouble.sandbox.kernel.INTERRUPT_GRACE_S", 2)  # as on a node
    ignoring = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{HANG}"

    async def check(session: SandboxSession) -> None:
        result = await run(session, ignoring, timeout_s=0.5)

        assert ("timeout", True) == (result.status, result.context_lost)

    place.run(check)


def test_the_end_of_a_kernel_while_code_runs_is_a_result(place: Place) -> None:
    async def check(session: SandboxSession) -> None:
        result = await run(session, "import os; os._exit(3)")

        assert ("error", "KernelDied", True) == (
            result.status,
            result.outputs[-1].ename,
            result.context_lost,
        )
        assert "exited with code 3" in result.message

    place.run(check)


def test_the_end_of_a_kernel_while_nothing_runs_ends_the_session(place: Place) -> None:
    async def check(session: SandboxSession) -> None:
        await printed(session, "1")
        ended = asyncio.ensure_future(session.code_ended.wait())
        psutil.Process(session.processes.pids[0]).kill()
        await ended

        assert "killed by signal 9" in str(session.end_reason)
        with pytest.raises(InstanceEndedError, match="killed by signal 9"):
            await run(session, "1")

    place.run(check)


def test_outputs_beyond_the_limit_are_cut(place: Place) -> None:
    async def check(session: SandboxSession) -> None:
        text = await printed(session, f"print('x' * {2 * OUTPUT_LIMIT})")

        assert OUTPUT_LIMIT // 2 < text.count("x") <= OUTPUT_LIMIT

    place.run(check)


def test_a_directory_is_for_one_execution_only(place: Place) -> None:
    async def check(session: SandboxSession) -> None:
        look = "import os; print(os.getcwd())"
        home = (await printed(session, f"{look}; os.mkdir('sub')")).strip()

        assert f"{home}/sub\n" == await printed(session, look, cwd=f"{home}/sub")
        assert f"{home}\n" == await printed(session, look)
        with pytest.raises(SandboxError, match="nowhere") as refused:
            await run(session, look, cwd=f"{home}/nowhere")
        assert 400 == refused.value.status

    place.run(check)


def test_listeners_hear_the_start_the_outputs_and_the_end_once(place: Place) -> None:
    """Also if the kernel ends meanwhile."""

    async def heard(session: SandboxSession, code: str) -> list[tuple[str, Any]]:
        with place.sessions.feed.listen(session.key) as listener:
            publisher = place.sessions.feed.publisher(session.key)
            await run(session, code, publisher=publisher)
            listener.close()
            return [(e.kind, e.data.get("context_lost")) async for e in listener.events()]

    async def check(session: SandboxSession) -> None:
        start = [("listening", None), ("started", None), ("output", None)]
        printing, dying = "print(1, flush=True)", "import time, os; time.sleep(0.1); os._exit(1)"

        assert [*start, ("finished", False)] == await heard(session, printing)
        lost = await heard(session, f"{printing}; {dying}")
        assert (start, ("finished", True)) == (lost[:3], lost[-1])
        assert 1 == [kind for kind, _ in lost].count("finished")

    place.run(check)


def test_code_whose_caller_is_cancelled_is_interrupted(place: Place) -> None:
    """The next execution does not wait for it, and has its state."""

    async def check(session: SandboxSession) -> None:
        async with running(place, session, f"x = 1\n{HANG}") as task:
            task.cancel()
            await asyncio.wait({task})

        assert "1\n" == await printed(session, "print(x)")

    place.run(check)


@pytest.mark.parametrize("paused", [False, True])
def test_an_interrupt_names_the_languages_whose_code_ran(place: Place, paused: bool) -> None:
    """Code that runs goes on while its session is paused, so it can be interrupted."""

    async def check(session: SandboxSession) -> None:
        async with running(place, session, HANG) as task:
            if paused:
                place.sessions.pause(session)
            assert ("python3",) == await session.processes.interrupt()
            result = await task

        assert "KeyboardInterrupt" == result.outputs[-1].ename
        assert () == await session.processes.interrupt()

    place.run(check)


def test_questions_are_answered_only_by_an_idle_kernel(place: Place) -> None:
    async def check(session: SandboxSession) -> None:
        processes = session.processes

        async def ask() -> tuple[tuple[str, ...], str]:
            completion = await processes.complete("printab", 7, languages.PYTHON)
            return completion.matches, (await processes.list_variables()).state

        await printed(session, "printable = 1")
        idle = await ask()
        async with running(place, session, HANG):
            busy = await ask()
        place.sessions.pause(session)
        halted = await ask()

        assert (("printable",), "idle") == idle
        assert ((), "busy") == busy == halted

    place.run(check)


def test_a_failed_command_is_an_answer_and_its_shell_goes_on(place: Place) -> None:
    async def check(session: SandboxSession) -> None:
        failed = await bash(place, session, "x=kept; false")
        after = await bash(place, session, "echo $x")

        assert (1, "completed") == (failed["exit_code"], failed["status"])
        assert "kept\n" == after["stdout"]

    place.run(check)


def test_a_paused_session_starts_nothing(place: Place) -> None:
    async def check(session: SandboxSession) -> None:
        place.sessions.pause(session)
        for starting in (run(session, "1"), bash(place, session, "true")):
            with pytest.raises(SandboxError, match="is paused") as refused:
                await starting
            assert 409 == refused.value.status

        assert () == session.processes.pids

    place.run(check)


def test_notebooks_get_the_kernel_of_executions_or_a_named_refusal(place: Place) -> None:
    async def check(session: SandboxSession) -> None:
        if place.kind == "node":
            with pytest.raises(NotBuiltError, match="notebook of a session on a node"):
                await session.kernel("python3")
            assert () == session.processes.pids
            return
        await printed(session, "x = 1")
        kernel = await session.kernel("python3")
        assert {"python3": kernel} == session.processes.kernels
        assert kernel is not await session.restart_kernel("python3")
        assert "NameError" == (await run(session, "x")).outputs[-1].ename

    place.run(check)


@pytest.mark.needs("files", "pid_namespace")
def test_a_session_returns_to_its_snapshot(place: Place) -> None:
    """Its state and files are those of that time, and what a copy lacks is named."""

    async def check(session: SandboxSession) -> None:
        await printed(session, "x = 1; open('f', 'w').write('first').__class__")
        await printed(session, "1", language="javascript")
        snapshot = await session.snapshot()
        await printed(session, "x = 2; open('f', 'w').close()")
        before = session.processes.pids
        await session.return_to(snapshot)

        assert "1 first\n" == await printed(session, "print(x, open('f').read())")
        assert any("JavaScript" in part for part in snapshot.omitted)
        assert snapshot.size >= len("first")
        assert [] == living(before)
        await snapshot.discard()

    place.run(check)


@pytest.mark.needs("files", "pid_namespace")
@pytest.mark.parametrize("work", ["snapshot", "return_to"])
def test_a_snapshot_of_a_session_that_ends_meanwhile_is_refused(place: Place, work: str) -> None:
    async def check(session: SandboxSession) -> None:
        await printed(session, "1")
        taken: list[Snapshot] = []
        if work == "return_to":
            taken.append(await session.snapshot())
        doing = session.return_to(taken[0]) if taken else session.snapshot()
        task = asyncio.ensure_future(doing)
        await asyncio.sleep(0)
        await place.sessions.destroy(session, "the check ends it")
        await asyncio.wait({task})
        error = task.exception()

        assert isinstance(error, SandboxError)
        assert "InvalidSnapshot.InstanceTerminating" == error.code
        assert "the check ends it" in str(error)
        for snapshot in taken:
            await snapshot.discard()

    place.run(check)


@pytest.mark.needs("files", "pid_namespace")
def test_a_snapshot_from_elsewhere_is_refused(place: Place) -> None:
    """The session goes on."""
    snapshots: list[Snapshot] = []

    async def take(source: SandboxSession) -> None:
        snapshots.append(await source.snapshot())

    async def check(session: SandboxSession) -> None:
        await printed(session, "x = 1")
        with pytest.raises(SnapshotRefusedError, match="node"):
            await session.return_to(snapshots[0])
        assert "1\n" == await printed(session, "print(x)")

    with contextlib.closing(Place("local" if place.kind == "node" else "node")) as elsewhere:
        elsewhere.run(take)
        place.run(check)


def test_killing_ends_every_process_and_removing_every_file(place: Place) -> None:
    """Code that runs gets a result that says so, and a second kill does nothing."""

    async def check(session: SandboxSession) -> None:
        processes = session.processes
        await bash(place, session, "true")
        await printed(session, "1", language="javascript")
        async with running(place, session, HANG) as task:
            pids, home = processes.pids, processes.home
            session.refuse("the check ends it")
            await processes.kill("the check ends it")
            left = living(pids)
            await processes.kill("again")
            result = await task
        await processes.remove()

        assert len(pids) >= 2
        assert [] == left
        assert ("error", True) == (result.status, result.context_lost)
        assert home is not None
        assert not home.exists()

    place.run(check)


def test_processes_that_never_started_can_be_ended(place: Place) -> None:
    async def check(session: SandboxSession) -> None:
        session.refuse("the check ends it")
        await session.processes.kill("the check ends it")
        await session.processes.remove()

        for starting in (run(session, "1"), bash(place, session, "true")):
            with pytest.raises(InstanceEndedError, match="the check ends it"):
                await starting

    place.run(check)
