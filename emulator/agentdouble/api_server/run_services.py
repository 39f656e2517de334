"""What runs use of the server, and the locks of its sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from agentdouble import ledger
from agentdouble.agents.loops import AgentLoops
from agentdouble.api_server.artifact_service import ArtifactService
from agentdouble.api_server.histories import Histories
from agentdouble.api_server.session_service import SessionService
from agentdouble.api_server.stores import SessionKey


class SessionLocks:
    """A lock for each session that has runs: a session has at most one run at a time."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[SessionKey, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def exclusive(self, key: SessionKey) -> AsyncIterator[None]:
        """Wait until the session's earlier runs have ended (U-RUN-CONCURRENT)."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        if lock.locked() and ledger.choose("U-RUN-CONCURRENT") == "interleaved":
            yield
            return
        async with lock:
            yield


@dataclass(frozen=True)
class RunServices:
    """The services of the server that runs use, and the loops that agents run on."""

    sessions: SessionService
    artifacts: ArtifactService
    histories: Histories
    loops: AgentLoops = field(default_factory=AgentLoops)
    locks: SessionLocks = field(default_factory=SessionLocks)
