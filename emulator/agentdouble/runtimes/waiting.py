"""The requests that wait for an instance: first come, first served, and bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from agentdouble.errors import HostingError
from agentdouble.runtimes.instance import Instance


class Caller:
    """A request that waits; ``given`` has the instance, or why there is none."""

    def __init__(self, session: str | None) -> None:
        self.session = session
        self.given: asyncio.Future[Instance] = asyncio.get_running_loop().create_future()


class Queue:
    """Callers in the order of their coming."""

    def __init__(self) -> None:
        self._callers: dict[Caller, None] = {}

    def __len__(self) -> int:
        return len(self._callers)

    def __iter__(self) -> Iterator[Caller]:
        return iter(tuple(self._callers))

    def join(self, session: str | None) -> Caller:
        """Return a new caller, the last in the row."""
        caller = Caller(session)
        self._callers[caller] = None
        return caller

    def leave(self, caller: Caller) -> Instance | None:
        """Take out a caller that waits no longer; return what it was given meanwhile, if it was."""
        self._callers.pop(caller, None)
        given = caller.given
        if not given.done():
            given.cancel()
            return None
        return None if given.exception() else given.result()

    def serve(
        self, has_room: Callable[[], bool], pick: Callable[[Caller], Instance | None]
    ) -> None:
        """Give each caller what ``pick`` has for it, while there is room at all."""
        for caller in self:
            if not has_room():
                return
            instance = pick(caller)
            if instance is not None:
                instance.in_flight += 1
                del self._callers[caller]
                caller.given.set_result(instance)

    def fail(self, error: HostingError) -> None:
        """Tell every caller that there is no instance for it."""
        for caller in self:
            caller.given.set_exception(error)
        self._callers.clear()
