"""The histories of sessions as objects of their frameworks, so that a run parses no event twice."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentdouble.agents.framework import FrameworkEvent
from agentdouble.api_server.stores import Revision, SessionKey, SessionStore, StoredSession

# Bytes of the JSON of events; the objects of ADK take some nine times as much.
MOST = 512 * 1024


@dataclass(frozen=True)
class Opened:
    """A session, its first events as objects, and its other events as JSON."""

    session: StoredSession
    parsed: Sequence[Any]
    unread: Sequence[bytes]


class _History:
    def __init__(self, number: int) -> None:
        self.number = number
        self.events: list[Any] = []
        self.size = 0


class Histories:
    """Histories of sessions, the least recently used first; used on the server's loop alone."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._size = 0
        self._histories: OrderedDict[SessionKey, _History] = OrderedDict()

    async def open(self, key: SessionKey, head: StoredSession | None = None) -> Opened | None:
        """Return a session, or None if there is none; ``head`` is the session without events."""
        head = head or await self._store.head(key)
        if head is None:
            return None
        # What is kept may be newer than the head: ``_parsed`` cuts it off at the head's revision.
        events = self._parsed(key, head.revision)
        if len(events) == head.revision.events:
            return Opened(head, events, ())
        session = await self._store.read(key)
        if session is None:
            return None
        # Again: the session may have been deleted and created anew since its head was read, and
        # then its revision has another history.
        events = self._parsed(key, session.revision)
        return Opened(session, events, session.events_after(len(events)))

    def add_read(self, opened: Opened, events: Sequence[Any]) -> None:
        """Keep the objects of an opened session's unread events."""
        revision, size = opened.session.revision, sum(len(event) for event in opened.unread)
        self._add(opened.session.key, revision, events, size)

    def add_stored(
        self, key: SessionKey, revision: Revision, events: Sequence[FrameworkEvent]
    ) -> None:
        """Keep the objects of events that were just stored; they led to ``revision``."""
        size = sum(len(event.json) for event in events)
        self._add(key, revision, [event.value for event in events], size)

    def clear(self) -> None:
        """Forget everything."""
        self._histories.clear()
        self._size = 0

    def _parsed(self, key: SessionKey, revision: Revision) -> list[Any]:
        history = self._histories.get(key)
        if history is None or history.number != revision.history:
            return []
        self._histories.move_to_end(key)
        return history.events[: revision.events]

    def _add(self, key: SessionKey, revision: Revision, events: Sequence[Any], size: int) -> None:
        """Keep events that end at a revision, if those before them are kept."""
        history = self._histories.get(key)
        first = revision.events - len(events)
        if first == 0 and (history is None or history.number != revision.history):
            self._forget(key)
            history = self._histories[key] = _History(revision.history)
        # Two runs may have read the same events, or the next ones have been added before: only
        # events that continue the list are kept, so it never has a gap.
        if history is None or history.number != revision.history or len(history.events) != first:
            return
        history.events += events
        history.size += size
        self._size += size
        self._histories.move_to_end(key)
        while self._size > MOST and len(self._histories) > 1:
            self._forget(next(iter(self._histories)))

    def _forget(self, key: SessionKey) -> None:
        history = self._histories.pop(key, None)
        if history is not None:
            self._size -= history.size
