"""The open bash sessions of one kind in a sandbox, by name."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

from agentdouble.sandbox.workbench.bash_session import BashSession
from agentdouble.sandbox.workbench.paths import HOME, Paths
from agentdouble.sandbox.workbench.wire import FailedError

MAX_SESSIONS = 32

Session = TypeVar("Session", bound=BashSession)


class BashSessions(Generic[Session]):
    """Creates, finds and closes sessions; ``kind`` is their name in messages.

    ``make`` is called with a name, a directory and a function that turns a real path into the one
    to show. ``memory_limit`` (bytes) applies to each process in a session.
    """

    def __init__(
        self,
        kind: str,
        make: Callable[[str, str, Callable[[str], str]], Session],
        paths: Paths,
        memory_limit: int | None,
    ) -> None:
        self._kind = kind
        self._new = make
        self._paths = paths
        self._memory_limit = memory_limit
        self._sessions: dict[str, Session] = {}
        self._making = asyncio.Lock()

    def __iter__(self) -> Iterator[Session]:
        """Iterate over the open sessions, oldest first."""
        self._forget_closed()
        return iter(list(self._sessions.values()))

    def directory(self, asked: str | None, *, strict: bool = True) -> str | None:
        """Return the real path of the given directory; None if ``asked`` is None.

        Raises FailedError for a path outside the sandbox. For a path that is not a directory,
        raises FailedError if ``strict``, else returns None.
        """
        if asked is None:
            return None
        try:
            directory = self._paths.real(asked)
        except PermissionError as error:
            raise FailedError(f"exec_dir {asked!r}: {error.strerror}.") from None
        if Path(directory).is_dir():
            return directory
        if strict:
            raise FailedError(f"exec_dir {asked!r} is no directory.")
        return None

    async def get_or_make(self, session_id: str | None, directory: str | None) -> Session:
        """Return the session of that name, or a new one in the directory; raise FailedError."""
        async with self._making:
            self._forget_closed()
            found = None if session_id is None else self._sessions.get(session_id)
            return found or await self._make(session_id or uuid.uuid4().hex, directory)

    def find(self, session_id: str) -> Session:
        """Return the session of that name; raise FailedError if there is none."""
        found = self._sessions.get(session_id)
        if found is None:
            raise FailedError(f"There is no {self._kind} {session_id!r}.")
        return found

    async def close(self, session_id: str) -> None:
        """End a session and all its processes; raise FailedError if there is no such session."""
        await self.find(session_id).close()
        self._forget_closed()

    async def _make(self, session_id: str, directory: str | None) -> Session:
        if len(self._sessions) >= MAX_SESSIONS:
            raise FailedError(
                f"{MAX_SESSIONS} {self._kind}s are open and no more are allowed: close one."
            )
        session = self._new(session_id, directory or self._paths.real(HOME), self._paths.shown)
        try:
            await session.start(self._memory_limit)
        except OSError as error:
            raise FailedError(f"No {self._kind} could be started: {error}") from None
        session.working_dir = self._paths.shown(session.working_dir)
        self._sessions[session.id] = session
        return session

    def _forget_closed(self) -> None:
        for closed in [one.id for one in self._sessions.values() if one.closed]:
            del self._sessions[closed]
