"""The events of recently used sessions as a framework's objects, so that no turn parses them again.

What others change is noticed by the session's revision, which every look at a session brings: if
events were added, only these are parsed, and if the history is another one, all of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentdouble.agents.framework import FrameworkEvent
from agentdouble.api_server.stores import Revision, SessionKey, SessionStore, StoredSession

# Bytes of the JSON of events; the objects of ADK take some fourteen times as much.
MOST = 2 * 1024 * 1024


@dataclass(frozen=True)
class Opened:
    """A session, its first events as objects, and its other events as JSON."""

    session: StoredSession
    known: Sequence[Any]
    unread: Sequence[bytes]


class _History:
    def __init__(self, number: int) -> None:
        self.number = number
        self.events: list[Any] = []
        self.size = 0


class Histories:
    """Histories of sessions, the least recently used first; used on the server's loop alone."""

    def __init__(self, store: SessionStore, most: int = MOST) -> None:
        self._store = store
        self._most = most
        self._size = 0
        self._histories: OrderedDict[SessionKey, _History] = OrderedDict()

    async def open(self, key: SessionKey, head: StoredSession | None = None) -> Opened | None:
        """Return a session, or None if there is none; ``head`` is the session without events."""
        head = head or await self._store.head(key)
        if head is None:
            return None
        known = self._known(key, head.revision)
        if len(known) == head.revision.events:
            return Opened(head, known, ())
        whole = await self._store.read(key)
        if whole is None:
            return None
        known = self._known(key, whole.revision)
        return Opened(whole, known, whole.whole_events(len(known)))

    def add_read(self, opened: Opened, events: Sequence[Any]) -> None:
        """Keep the objects of an opened session's unread events."""
        revision, size = opened.session.revision, sum(len(one) for one in opened.unread)
        self._add(opened.session.key, revision, events, size)

    def add_stored(
        self, key: SessionKey, revision: Revision, events: Sequence[FrameworkEvent]
    ) -> None:
        """Keep the objects of events that were just stored; they led to ``revision``."""
        size = sum(len(one.json) for one in events)
        self._add(key, revision, [one.value for one in events], size)

    def clear(self) -> None:
        """Forget everything."""
        self._histories.clear()
        self._size = 0

    def _known(self, key: SessionKey, revision: Revision) -> list[Any]:
        found = self._histories.get(key)
        if found is None or found.number != revision.history:
            return []
        self._histories.move_to_end(key)
        return found.events[: revision.events]

    def _add(self, key: SessionKey, revision: Revision, events: Sequence[Any], size: int) -> None:
        """Keep events that end at a revision, if those before them are kept."""
        found = self._histories.get(key)
        first = revision.events - len(events)
        if first == 0 and (found is None or found.number != revision.history):
            self._forget(key)
            found = self._histories[key] = _History(revision.history)
        if found is None or found.number != revision.history or len(found.events) != first:
            return
        found.events += events
        found.size += size
        self._size += size
        self._histories.move_to_end(key)
        while self._size > self._most and len(self._histories) > 1:
            self._forget(next(iter(self._histories)))

    def _forget(self, key: SessionKey) -> None:
        found = self._histories.pop(key, None)
        if found is not None:
            self._size -= found.size
