"""What sessions on this machine use, and the end of those that use more than allowed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from agentdouble.core.threads import pause, run_in_thread
from agentdouble.processes.watch import Watch, Watched
from agentdouble.sandbox.session import SandboxSession
from agentdouble.settings import Settings

_log = logging.getLogger(__name__)


class SessionUsage:
    """Measures the ``living`` sessions, and destroys those that use too much memory or disk."""

    def __init__(
        self,
        settings: Settings,
        living: Mapping[str, SandboxSession],
        destroy: Callable[[SandboxSession, str], Awaitable[None]],
    ) -> None:
        self._settings = settings
        self._living = living
        self._destroy = destroy
        self._watch = Watch()
        self._measuring = asyncio.Lock()

    def mark_active(self, session: SandboxSession) -> None:
        """Measure a session soon: it is used, became idle or started a process."""
        # A node measures its sessions itself; their process ids mean other processes here.
        if session.end_reason is None and session.processes.node is None:
            self._watch.mark_active(session.id)

    def forget(self, session: SandboxSession) -> None:
        """Forget a session that has ended."""
        self._watch.forget(session.id)

    async def watch(self) -> None:
        """Measure the sessions and destroy those over their limit, forever."""
        while True:
            try:
                await self.destroy_overgrown()
            except Exception:  # the next try may succeed
                _log.exception("The sessions' memory and files could not be measured.")
            await pause(self._watch.pause_s)

    async def destroy_overgrown(self) -> None:
        """Measure every session that may have grown; destroy those over their limit."""
        async with self._measuring:  # ``Watch`` is used in one thread at a time
            active = await run_in_thread(self._watch.active) if self._living else set()
            sessions = {s.id: s for s in map(self._living.get, active) if s is not None}
            for name in active - sessions.keys():  # the session ended during the measurement
                self._watch.forget(name)
            watched = [self._watched(session) for session in sessions.values()]
            reasons = await run_in_thread(lambda: self._watch.check(watched)) if watched else {}
            for name, session in sessions.items():
                session.used = self._watch.used_by(name)
        # Not while the lock is held: a session with a million files takes long to end.
        await asyncio.gather(
            *(self._destroy(sessions[name], reason) for name, reason in reasons.items())
        )

    def _watched(self, session: SandboxSession) -> Watched:
        settings, processes = self._settings, session.processes
        return Watched(
            *(session.id, processes.pids, settings.memory_limit, processes.directories),
            file_limit=settings.workspace_limit,
            capped=True,
        )
