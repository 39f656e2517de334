"""The open bash sessions of one kind in a sandbox, by name."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Iterator

from agentdouble.sandbox.workbench.bash_session import BashSession
from agentdouble.sandbox.workbench.wire import HOME, FailedError, Paths

MAX_SESSIONS = 32


class BashSessions:
    """Creates, finds and closes sessions; ``kind`` is their name in messages.

    ``memory_limit`` (bytes) applies to each process in a session; ``joined`` is as in BashSession.
    ``on_forget`` is called with each session that has ended, before it can no longer be found.
    """

    def __init__(
        self,
        kind: str,
        paths: Paths,
        memory_limit: int | None,
        *,
        joined: bool = False,
        on_forget: Callable[[BashSession], None] | None = None,
    ) -> None:
        self._kind = kind
        self._paths = paths
        self._memory_limit = memory_limit
        self._joined = joined
        self._on_forget = on_forget
        self._unnamed: set[str] = set()  # sessions that no request has named
        self._sessions: dict[str, BashSession] = {}
        self._making = asyncio.Lock()

    def __iter__(self) -> Iterator[BashSession]:
        """Iterate over the open sessions, oldest first."""
        self._forget_closed()
        return iter(list(self._sessions.values()))

    def directory(self, path: str | None, *, strict: bool = True) -> str | None:
        """Return the real path of the given directory; None if ``path`` is None.

        For a path that is not a directory of the sandbox, raises FailedError if ``strict``, else
        returns None.
        """
        if path is None:
            return None
        try:
            directory = self._paths.real(path)
        except PermissionError as error:
            if not strict:
                return None
            raise FailedError(f"exec_dir {path!r}: {error.strerror}.") from None
        if os.path.isdir(directory):  # noqa: PTH112 (Path.is_dir raises for a very long name)
            return directory
        if strict:
            raise FailedError(f"exec_dir {path!r} is not a directory.")
        return None

    async def get_or_make(self, session_id: str | None, directory: str | None) -> BashSession:
        """Return the session of that name, or a new one in the directory; raise FailedError."""
        async with self._making:
            self._forget_closed()
            if session_id is not None and session_id in self._sessions:
                self._unnamed.discard(session_id)
                return self._sessions[session_id]
            await self._make_room()
            session = BashSession(
                session_id or uuid.uuid4().hex,
                directory or self._paths.real(HOME),
                self._paths.shown,
                joined=self._joined,
            )
            try:
                await session.start(self._memory_limit)
            except OSError as error:
                raise FailedError(f"No {self._kind} could be started: {error}") from None
            self._sessions[session.id] = session
            if session_id is None:
                self._unnamed.add(session.id)
            return session

    async def _make_room(self) -> None:
        """End an idle session if the limit is reached; raise FailedError if none may be ended.

        Clients that name no session get a new one for each command and never close it. So the one
        of these that was used longest ago is ended, but not the processes that it has left.
        """
        if len(self._sessions) < MAX_SESSIONS:
            return
        unused = [self._sessions[name] for name in self._unnamed]
        idle = [session for session in unused if session.current is None]
        if not idle:
            raise FailedError(f"Too many {self._kind}s (limit {MAX_SESSIONS}): close one.")
        await min(idle, key=lambda session: session.last_used_at).end()
        self._forget_closed()

    def find(self, session_id: str) -> BashSession:
        """Return the session of that name; raise FailedError if there is none."""
        if session_id not in self._sessions:
            raise FailedError(f"There is no {self._kind} {session_id!r}.")
        return self._sessions[session_id]

    async def close(self, session_id: str) -> None:
        """End a session and all its processes; raise FailedError if there is no such session."""
        await self.find(session_id).close()
        self._forget_closed()

    def _forget_closed(self) -> None:
        for closed in [session for session in self._sessions.values() if session.closed]:
            if self._on_forget is not None:
                self._on_forget(closed)
            del self._sessions[closed.id]
            self._unnamed.discard(closed.id)
