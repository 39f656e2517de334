"""The one connection to PostgreSQL that owns the records; it is made again when it is lost.

The owner holds an advisory lock on the connection that it writes with, and its name is in the
table ``owner``. A new connection takes the lock again, and finds the name there unless another
double was the owner meanwhile. In that case memory and the database differ.

A commit without an answer may have been made or not. So the earlier records are kept, and restored
if the callers got an error.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from asyncpg import PostgresError
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from agentdouble.errors import StateError
from agentdouble.state import owning

ANSWER_S = 10.0  # a server that does not answer for so long counts as lost
PATIENCE_S = 15.0  # how long a writer waits for a lost server
_CLOSE_S = 2.0
_PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1.0)

MakeError = Callable[[str, BaseException], StateError]
FAILURES = (DBAPIError, PostgresError, OSError, asyncio.TimeoutError)  # SQLAlchemy wraps only some

_log = logging.getLogger(__name__)


class LostError(Exception):
    """The connection has ended; its last work may be done or not."""


@dataclass(frozen=True)
class _Line:
    """A connection and asyncpg's own connection below it, which a lost connection cannot return."""

    connection: AsyncConnection
    raw: Any

    async def close(self) -> None:
        """End the connection, and report that to the server if it listens."""
        with suppress(*FAILURES):
            await asyncio.wait_for(self.raw.close(), _CLOSE_S)
        await self.end()

    async def end(self) -> None:
        """Break the connection off."""
        self.raw.terminate()
        with suppress(*FAILURES):
            await self.connection.invalidate()
            await self.connection.close()


class Link:
    """The connection of one owner; belongs to one event loop.

    ``error`` makes a StateError from the failed action and its error.
    """

    def __init__(self, engine: AsyncEngine, error: MakeError) -> None:
        self._engine = engine
        self._error = error
        self.owner = owning.Owner(secrets.token_hex(16))
        self._using = asyncio.Lock()  # one connection does one thing at a time
        self._line: _Line | None = None
        self._backend: tuple[int, Any] = (0, None)
        self._changed = asyncio.Event()
        self._why: StateError | None = None
        self._since = 0.0
        self._connecting: asyncio.Task[None] | None = None
        self._closing = False

    @property
    def is_open(self) -> bool:
        """Whether the link has been opened and not closed."""
        return self._line is not None or self._connecting is not None

    async def open(self, lock_timeout_s: float) -> None:
        """Connect and become the owner; raise StateError if that fails."""
        async with self._connected("cannot be opened") as connection:
            await owning.lock(connection, lock_timeout_s)
            await owning.begin(connection, self.owner)

    @asynccontextmanager
    async def transaction(self, until: float) -> AsyncIterator[AsyncConnection]:
        """Yield the connection to one user at a time; wait for it until ``until`` in loop time.

        Rolls back after an error. Raises StateError if there is no connection, LostError if it
        ends.
        """
        async with self._used(until) as line:
            watchdog = asyncio.get_running_loop().call_later(ANSWER_S, line.raw.terminate)
            try:
                yield line.connection
            except BaseException as error:
                await self._recover(line, error)
                raise
            finally:
                watchdog.cancel()

    def refusal(self) -> StateError | None:
        """Return why no query is possible now, or None if no reason is known."""
        if self.owner.lost is not None:
            return self.owner.lost
        return None if self._line is not None else self._why

    def stop_waiting(self) -> None:
        """Let no caller wait any longer for a server that does not answer."""
        self._closing = True
        self._changed.set()

    async def close(self) -> None:
        """Release the lock and the connection, even if the server does not answer."""
        self.stop_waiting()
        connecting, line = self._connecting, self._line
        self._connecting = self._line = None
        if connecting is not None:
            connecting.cancel()
            await asyncio.wait({connecting})
        if line is not None:
            await line.close()
        await self._engine.dispose()

    @asynccontextmanager
    async def _used(self, until: float) -> AsyncIterator[_Line]:
        while True:
            line = await self._get(until)
            async with self._using:
                if line is self._line:
                    yield line
                    return

    async def _get(self, until: float) -> _Line:
        loop = asyncio.get_running_loop()
        while self._line is None:
            patience = min(until, self._since + PATIENCE_S) - loop.time()
            if patience <= 0 or self._closing or self.owner.lost is not None:
                raise self.refusal() or self._error("is not open", OSError("it was not opened"))
            self._changed.clear()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), patience)
        if self.owner.lost is not None:
            raise self.owner.lost
        return self._line

    async def _recover(self, line: _Line, error: BaseException) -> None:
        """Roll back after an error; raise LostError if the connection cannot be used any more."""
        other = isinstance(error, owning.OtherOwnerError)
        if not line.raw.is_closed() and not other and not owning.is_read_only(error):
            with suppress(*FAILURES):
                await line.connection.rollback()
                return
        self._lose(line, error)
        if other:
            raise self._lost_for_good(error) from None
        raise LostError from error

    def _lose(self, line: _Line, error: BaseException) -> None:
        """Start to connect again, once for each lost connection."""
        if self._line is not line or self._closing:
            return
        self._line = None
        self._why = self._error("is lost", error)
        self._since = asyncio.get_running_loop().time()
        _log.warning("%s It is looked for until it is back.", self._why)
        self._connecting = asyncio.ensure_future(self._connect_again(line))

    async def _connect_again(self, lost: _Line) -> None:
        async with self._using:
            await lost.end()
        tries = 0
        while self.owner.lost is None:
            try:
                await self._resume()
            except StateError as error:
                self._why = error
                await asyncio.sleep(_PAUSES_S[min(tries, len(_PAUSES_S) - 1)])
                tries += 1
            else:
                _log.warning("The state is there again.")
                break
        self._connecting = None
        self._changed.set()

    async def _resume(self) -> None:
        """Connect and confirm that this double still is the owner; raise StateError if not."""
        async with self._connected("is lost") as connection:
            await owning.look(connection, self.owner)
            await owning.end_backend(connection, *self._backend)
            await owning.lock(connection, 0)
            await owning.resume(connection, self.owner)

    @asynccontextmanager
    async def _connected(self, what: str) -> AsyncIterator[AsyncConnection]:
        """Start to use a new connection after the work inside is committed.

        All of it must end within the server's answer time; raises StateError.
        """
        try:
            connection = await self._engine.connect()
        except FAILURES as error:
            raise self._error(what, error) from None
        line = _Line(connection, (await connection.get_raw_connection()).driver_connection)
        watchdog = asyncio.get_running_loop().call_later(ANSWER_S, line.raw.terminate)
        try:
            yield connection
            self._backend = await owning.backend(connection)
            await connection.commit()
        except BaseException as error:
            await line.end()
            raise self._understood(error) from None
        finally:
            watchdog.cancel()
        line.raw.add_termination_listener(lambda _raw: self._ended(line))
        self._line = line
        self._changed.set()

    def _ended(self, line: _Line) -> None:
        self._lose(line, OSError("the connection has ended"))

    def _understood(self, error: BaseException) -> BaseException:
        if isinstance(error, owning.OtherOwnerError):
            return self._lost_for_good(error)
        if isinstance(error, (owning.LockedError, *FAILURES)):
            return self._error("cannot be used", error)
        return error

    def _lost_for_good(self, error: BaseException) -> StateError:
        self.owner.lost = self._error(
            "is no longer this double's",
            OSError(f"{error}, and what is in memory is not what is kept. Restart the double"),
        )
        _log.error("%s", self.owner.lost)
        return self.owner.lost
