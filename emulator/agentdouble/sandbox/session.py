"""A session of the sandbox: its identity, its lifetime, its turn, and its end.

What runs in it is behind ``Processes``, so a session is the same wherever its processes are.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from agentdouble.errors import InstanceEndedError, SandboxError, SnapshotRefusedError
from agentdouble.sandbox import languages
from agentdouble.sandbox.instance_key import InstanceKey
from agentdouble.sandbox.lifetime import Lifetime
from agentdouble.sandbox.readiness import Readiness
from agentdouble.sandbox.result import ExecutionResult
from agentdouble.sandbox.session_log import SessionLog
from agentdouble.sandbox.turn import ExecutionTurn, Occupancy

if TYPE_CHECKING:
    from agentdouble.processes.watch import Used
    from agentdouble.sandbox.kernel import Kernel
    from agentdouble.sandbox.output_feed import ExecutionPublisher
    from agentdouble.sandbox.session_processes import LastSnapshot, Processes, Snapshot

_LAST_TURN_S = 1.0  # the time that interrupted code has to return

Identity = tuple[str, str]  # id and token


def new_identity() -> Identity:
    """Return a random id and token."""
    return f"s-{secrets.token_hex(10)}", secrets.token_urlsafe(24)


class SandboxSession:
    """One session: identity, lifetime, turn, log, and its processes.

    ``place`` makes its processes. The callbacks get the session: ``on_lost`` ends it at once
    because its state is lost, ``expire`` lets its deadline pass, ``on_change`` is called when it is
    used, becomes idle or starts a process, and ``on_occupancy`` when its turn becomes busy or idle.
    """

    def __init__(
        self,
        key: InstanceKey,
        lifetime: Lifetime,
        *,
        identity: Identity,
        created_at: dt.datetime,
        variables: Mapping[str, str],
        metadata: Mapping[str, str],
        log: SessionLog,
        place: Callable[[SandboxSession], Processes],
        on_lost: Callable[[SandboxSession, str], None],
        expire: Callable[[SandboxSession], Awaitable[None]],
        on_change: Callable[[SandboxSession], None],
        on_occupancy: Callable[[SandboxSession, Occupancy], None],
    ) -> None:
        self.key = key
        self.id, self.token = identity  # a client shows the token to the data plane to enter
        self.created_at = created_at
        self.lifetime = lifetime
        self.readiness = Readiness()
        self.turn = ExecutionTurn(key.user_session_id, lambda now: on_occupancy(self, now))
        self.variables = variables
        self.metadata = metadata
        self.log = log
        self.executions = 0  # that have begun
        self.notice: str | None = None  # what the first result says of an earlier instance
        self.used: Used | None = None  # when it was measured, at most 5 s ago
        self.code_ended = asyncio.Event()  # set when it has ended and runs no code any more
        self._on_lost = on_lost
        self._expire = expire
        self._on_change = on_change
        self._end_reason: str | None = None
        self.ending: asyncio.Task[None] | None = None  # runs ``end``
        self.processes = place(self)  # last: they may use all of the above

    @property
    def end_reason(self) -> str | None:
        """The reason why the session has ended, or None while it lives."""
        return self._end_reason

    @property
    def idle(self) -> bool:
        """Whether questions may be asked: no code runs or waits, and it is not paused."""
        return not self.turn.busy and self.lifetime.state == "active"

    def check_living(self) -> None:
        """Raise InstanceEndedError if the session has ended."""
        if self._end_reason is not None:
            raise InstanceEndedError(self.key.user_session_id, self._end_reason)

    def check_usable(self) -> None:
        """Raise InstanceEndedError, or SandboxError if the session is paused or did not start."""
        self.check_living()
        if self.readiness.failed:
            raise failed_error(self.key.user_session_id)
        if self.lifetime.state == "paused":
            raise paused_error(self.key.user_session_id)

    def check_at_rest(self) -> None:
        """Raise SnapshotRefusedError unless the session lives, has started and runs no code."""
        if self._end_reason is not None:
            raise _terminating(self._end_reason)
        if self.readiness.failed:
            raise SnapshotRefusedError(
                "the session did not start: delete it", "InvalidSnapshot.InstanceFailed"
            )
        if self.lifetime.state == "paused":
            raise SnapshotRefusedError(
                "the session is paused: resume it first", "InvalidSnapshot.InstancePaused"
            )
        if self.turn.busy:
            raise SnapshotRefusedError(
                "code of the session runs or waits for its turn: wait for its end, or interrupt it",
                "InvalidSnapshot.InstanceBusy",
            )

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count as being at work in this context, which may defer the end (U-TTL-DURING)."""
        self.readiness.finish()
        try:
            with self.lifetime.working():
                self._on_change(self)
                yield
        finally:
            if not self.lifetime.at_work:
                self._on_change(self)

    @asynccontextmanager
    async def _in_turn(self) -> AsyncIterator[None]:
        with self.working():
            async with self.turn.taken():
                self.check_usable()  # it may have ended or been paused while this waited
                yield

    async def execute(
        self,
        code: str,
        language: str,
        timeout_s: float,
        cwd: str | None = None,
        publisher: ExecutionPublisher | None = None,
    ) -> ExecutionResult:
        """Run code in the session, one execution at a time, in arrival order (SBX-02).

        ``cwd`` and ``publisher`` are as in ``Processes.execute``, whose errors this raises, and
        SandboxError for an unknown language, or if the session is busy and the ledger says so.
        """
        kind = languages.find(language)
        self.turn.check_free()
        async with self._in_turn():
            return await self.processes.execute(kind, code, timeout_s, cwd, publisher)

    async def kernel(self, language: str) -> Kernel:
        """Return the kernel that InvokeTool uses for a language; start it if there is none.

        Raises the errors of ``Processes.kernel``, and SandboxError for an unknown language.
        """
        async with self._in_turn():
            return await self.processes.kernel(languages.find(language))

    async def restart_kernel(self, language: str) -> Kernel:
        """Replace a kernel by a new one; code of InvokeTool that runs in it is interrupted.

        Raises the errors of ``kernel``.
        """
        await self.processes.drop_kernel(languages.find(language))
        return await self.kernel(language)

    @asynccontextmanager
    async def notebook_turn(self, kernel: Kernel) -> AsyncIterator[None]:
        """Hold the session's turn while a client of the kernel runs code (SBX-02).

        Raises InstanceEndedError, and SandboxError as ``execute`` does.
        """
        self.turn.check_free()
        async with self._in_turn():
            self.executions += 1
            yield
        self.processes.note_death(kernel, "while a notebook's code ran")

    async def snapshot(self) -> Snapshot:
        """Take a snapshot; raise SnapshotRefusedError, and the errors of a kernel's start."""
        self.check_at_rest()
        with self._refusing_when_ended():
            async with self._in_turn():
                return await self.processes.snapshot()

    async def return_to(
        self, snapshot: Snapshot, first: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Replace the processes and files with those of a snapshot.

        If the snapshot cannot be copied, nothing is replaced. ``first`` is awaited before that, in
        the turn that a new session takes without a pause. Raises SnapshotRefusedError, and the
        errors of ``first`` and of a kernel's start.
        """
        with self._refusing_when_ended():
            async with self._in_turn():
                if first is not None:
                    await first()
                await self.processes.return_to(snapshot)

    @contextmanager
    def _refusing_when_ended(self) -> Iterator[None]:
        """Turn the end of the session into SnapshotRefusedError."""
        try:
            yield
        except InstanceEndedError as error:
            raise _terminating(self._end_reason or error.reason) from error

    def note_start(self, event: str) -> None:
        """Log that a process has started, and have it measured soon."""
        self.log.note(event)
        self._on_change(self)

    def lose(self, reason: str) -> None:
        """End the session, whose state is lost, unless it has ended already.

        It is unreachable when this returns; what still runs is ended in the background.
        """
        if self._end_reason is None:
            self._on_lost(self, reason)

    async def expire(self) -> None:
        """Let the deadline pass while code runs; return when the processes have ended.

        Return at once if the ledger lets the code finish.
        """
        await self._expire(self)

    def take_notice(self, message: str) -> str:
        """Return the message of a result; the first one tells the end of an earlier instance."""
        notice, self.notice = self.notice, None
        return message if notice is None else f"{message.rstrip('.')}. {notice}"

    def refuse(self, reason: str) -> None:
        """Refuse all executions from now on, including those that wait for their turn."""
        if self._end_reason is None:
            self._end_reason = reason

    async def last_snapshot(self) -> LastSnapshot:
        """Take a snapshot of the session before its end; code that runs is interrupted.

        Code that ignores the interrupt is killed with its kernel, and then the snapshot has only
        files. Raises SandboxError.
        """
        await self.processes.interrupt()
        self.code_ended.set()  # first: code that a fault has interrupted waits for this in its turn
        over = asyncio.ensure_future(self.turn.idle())
        await asyncio.wait({over}, timeout=_LAST_TURN_S)
        if not over.done():
            await self.processes.kill(self._end_reason or "its snapshot was taken")
            await over
        return await self.processes.last_snapshot()

    async def end(self, reason: str, keep: Callable[[], Awaitable[None]] | None = None) -> None:
        """Kill the processes and remove the files; return when that is done.

        ``keep`` is awaited before that, to keep what the session has.
        """
        # Refuse first: a process that is starting now is not among those that ``kill`` knows, but
        # its starter looks at the reason afterwards, and kills it.
        self.refuse(reason)
        if keep is not None:
            await keep()
        await self.processes.kill(reason)
        self.code_ended.set()
        # Whatever held the turn or waited for it has ended by then, and so has whatever it was
        # starting: nothing uses the files any more.
        async with self.turn.over():
            await self.processes.remove()


def paused_error(user_session_id: str) -> SandboxError:
    """Return the error for a session that is paused."""
    message = f"The instance of session {user_session_id!r} is paused: resume it first."
    return SandboxError(message, "InvalidResource.Paused", 409)


def failed_error(user_session_id: str) -> SandboxError:
    """Return the error for a session whose start failed."""
    message = (
        f"The instance of session {user_session_id!r} did not start, because a fault was armed: "
        "delete it, or use another UserSessionId."
    )
    return SandboxError(message, "InvalidResource.Failed", 409)


def _terminating(reason: str) -> SnapshotRefusedError:
    return SnapshotRefusedError(
        f"the session has ended: {reason}", "InvalidSnapshot.InstanceTerminating"
    )
