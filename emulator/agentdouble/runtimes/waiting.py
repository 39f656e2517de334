"""The callers that wait for an instance, the sessions' instances, and the pause between starts."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator

from agentdouble.errors import HostingError
from agentdouble.runtimes.instance import Instance

_FIRST_S = 0.1
_LONGEST_S = 10.0
_TRIES = 3
SESSIONS_KEPT = 10_000
_SESSION_LENGTH = (
    512  # characters that are compared; longer ids with the same beginning share an instance
)


class Caller:
    """A request that waits; ``given`` has the instance, or the error if there is none."""

    def __init__(self, session: str | None) -> None:
        self.session = session
        self.given: asyncio.Future[Instance] = asyncio.get_running_loop().create_future()


class Queue:
    """The waiting callers in the order of their arrival."""

    def __init__(self) -> None:
        self._callers: dict[Caller, None] = {}

    def __len__(self) -> int:
        return len(self._callers)

    def __iter__(self) -> Iterator[Caller]:
        return iter(tuple(self._callers))

    def join(self, session: str | None) -> Caller:
        """Return a new caller, the last in the queue."""
        caller = Caller(session)
        self._callers[caller] = None
        return caller

    def leave(self, caller: Caller) -> Instance | None:
        """Remove a caller that waits no longer; return the instance that it has got, if any."""
        self._callers.pop(caller, None)
        given = caller.given
        if not given.done():
            given.cancel()
            return None
        return None if given.exception() else given.result()

    def serve(
        self, has_room: Callable[[], bool], pick: Callable[[Caller], Instance | None]
    ) -> None:
        """Give each caller the instance that ``pick`` returns, while any instance has room."""
        for caller in self:
            if not has_room():
                return
            instance = pick(caller)
            if instance is not None:
                instance.in_flight += 1
                del self._callers[caller]
                caller.given.set_result(instance)

    def fail(self, error: HostingError) -> None:
        """Fail every caller with an error."""
        for caller in self:
            caller.given.set_exception(error)
        self._callers.clear()


class Backoff:
    """Doubles the pause before the next start with each failure in a row, on the loop's clock."""

    def __init__(self) -> None:
        self.failures = 0
        self.proven = False  # an instance was ready once, so another try may succeed
        self._until = 0.0

    @property
    def hopeless(self) -> bool:
        """Whether callers should not wait for the next start, because starts fail too often."""
        # A program that has never been ready is a mistake, and waiting would hide it.
        # A program that was ready once gets two more tries.
        return not self.proven or self.failures >= _TRIES

    def failed(self, now: float) -> None:
        """Note at ``now`` that a start failed, or that an instance ended without serving."""
        self.failures += 1
        self._until = now + min(_LONGEST_S, _FIRST_S * 2.0 ** min(self.failures - 1, 20))

    def started(self) -> None:
        """Note that an instance became ready."""
        self.proven = True

    def served(self) -> None:
        """Note that an instance has served a request."""
        self.failures = 0
        self._until = 0.0

    def remaining_s(self, now: float) -> float:
        """Return how long to wait before the next try."""
        return max(0.0, self._until - now)


class Sessions:
    """The instances of sessions, limited in number: the least recently used one is forgotten."""

    def __init__(self) -> None:
        self._instances: OrderedDict[str, Instance] = OrderedDict()

    def find(self, session: str | None) -> Instance | None:
        """Return the instance of a session, if it has one that takes requests."""
        if session is None:
            return None
        instance = self._instances.get(session[:_SESSION_LENGTH])
        if instance is None or instance.state != "ready" or not instance.alive:
            return None
        return instance

    def keep(self, session: str | None, instance: Instance) -> None:
        """Remember that a session's requests go to an instance."""
        if session is None:
            return
        self._instances[session[:_SESSION_LENGTH]] = instance
        self._instances.move_to_end(session[:_SESSION_LENGTH])
        if len(self._instances) > SESSIONS_KEPT:
            self._instances.popitem(last=False)

    def forget(self, instance: Instance) -> None:
        """Forget an instance that takes no requests any more."""
        for session in [one for one, kept in self._instances.items() if kept is instance]:
            del self._instances[session]
