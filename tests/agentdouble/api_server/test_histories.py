"""What is kept of histories as objects, and when it is not used any more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import pytest

from agentdouble.agents.framework import FrameworkEvent
from agentdouble.api_server.persistent import PersistentSessions
from agentdouble.api_server.run import Histories
from agentdouble.api_server.stores import MemorySessions, SessionKey, SessionStore, StoredEvent
from agentdouble.errors import StateError
from agentdouble.state import Change, MemoryStore, Undo

ANN = SessionKey("app", "ann", "s1")
BOB = SessionKey("app", "bob", "s1")


class FailingStore(MemoryStore):
    """A store that fails when it is told to, after others could look."""

    fails = False

    def write(
        self, changes: Iterable[Change], undo: Undo, about: Iterable[Any] = ()
    ) -> Awaitable[None]:
        return self._refuse(undo) if self.fails else super().write(changes, undo, about)

    async def _refuse(self, undo: Undo) -> None:
        undo()
        raise StateError("full", where="here")


def event(name: str) -> FrameworkEvent:
    return FrameworkEvent(name, name, 0.0, f'"{name}"'.encode())


async def store(sessions: SessionStore, histories: Histories, key: SessionKey, *names: str) -> None:
    """Store events as a run does."""
    events = [event(name) for name in names]
    stored = [StoredEvent(one.id, one.timestamp, one.json) for one in events]
    revision = await sessions.append(key, stored)
    assert revision is not None
    histories.add_stored(key, revision, events)


async def seen(histories: Histories, key: SessionKey) -> tuple[Sequence[Any], Sequence[bytes]]:
    """Return what is known of a session, and what would have to be parsed."""
    opened = await histories.open(key)
    assert opened is not None
    return opened.known, opened.unread


def looked(
    body: Callable[[SessionStore, Histories], Awaitable[Any]],
    sessions: SessionStore | None = None,
    **more: int,
) -> Any:
    async def main() -> Any:
        made = sessions or MemorySessions()
        for key in (ANN, BOB):
            await made.create(key, {}, (), 0.0)
        return await body(made, Histories(made, **more))

    return asyncio.run(main())


def test_stored_events_are_known() -> None:
    async def body(sessions: SessionStore, histories: Histories) -> Any:
        await store(sessions, histories, ANN, "a", "b")
        await store(sessions, histories, ANN, "c")
        return await seen(histories, ANN), await seen(histories, BOB)

    assert ((["a", "b", "c"], ()), ([], ())) == looked(body)


def test_what_others_add_is_unread_until_it_is_kept() -> None:
    """And what is stored meanwhile is not taken for it."""

    async def body(sessions: SessionStore, histories: Histories) -> Any:
        await store(sessions, histories, ANN, "a")
        await sessions.append(ANN, [StoredEvent("x", 0.0, b'"x"')])
        opened = await histories.open(ANN)
        assert opened is not None
        await store(sessions, histories, ANN, "b")
        before = await seen(histories, ANN)
        histories.add_read(opened, ["x"])
        return before, await seen(histories, ANN)

    assert ((["a"], [b'"x"', b'"b"']), (["a", "x"], [b'"b"'])) == looked(body)


def test_another_session_of_the_name_is_unknown() -> None:
    """Whatever it has in common with the deleted one."""

    async def body(sessions: SessionStore, histories: Histories) -> Any:
        await store(sessions, histories, ANN, "a")
        late = await histories.open(ANN)
        assert late is not None
        await sessions.delete(ANN)
        gone = await histories.open(ANN)
        await sessions.create(ANN, {}, [StoredEvent("n", 0.0, b'"n"')], 0.0)
        histories.add_read(late, [])
        return gone, await seen(histories, ANN)

    assert (None, ([], [b'"n"'])) == looked(body)


def test_undone_events_are_forgotten() -> None:
    """A store that could not keep them takes them back."""
    failing = FailingStore()

    async def body(sessions: SessionStore, histories: Histories) -> Any:
        await store(sessions, histories, ANN, "a")
        failing.fails = True
        with pytest.raises(StateError):
            await store(sessions, histories, ANN, "b")
        failing.fails = False
        await sessions.append(ANN, [StoredEvent("c", 0.0, b'"c"', private=b'"whole c"')])
        return await seen(histories, ANN)

    assert ([], [b'"a"', b'"whole c"']) == looked(body, PersistentSessions(failing))


def test_no_more_is_kept_than_there_is_room_for() -> None:
    """The least recently used history goes first; the one in use stays, however long it is."""

    async def body(sessions: SessionStore, histories: Histories) -> Any:
        await store(sessions, histories, ANN, "a" * 40)
        await store(sessions, histories, BOB, "b" * 40)
        first = [len((await seen(histories, key))[0]) for key in (ANN, BOB)]
        await store(sessions, histories, BOB, "b" * 400)
        second = [len((await seen(histories, key))[0]) for key in (ANN, BOB)]
        return first, second

    assert ([1, 1], [0, 2]) == looked(body, most=100)


def test_a_clearing_forgets_everything() -> None:
    async def body(sessions: SessionStore, histories: Histories) -> Any:
        await store(sessions, histories, ANN, "a")
        histories.clear()
        await store(sessions, histories, ANN, "b")
        return await seen(histories, ANN)

    assert ([], [b'"a"', b'"b"']) == looked(body)
