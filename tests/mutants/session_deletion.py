"""Mutants of the deletion of sessions in API-server mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from agentdouble.api_server.memory import MemorySessions
from agentdouble.api_server.session_service import SessionService
from agentdouble.api_server.stores import SessionKey, StoredEvent, StoredSession
from tests.mutants import Mutant, wire
from tests.mutants.api_changes import (
    CREATE_WITH_ID,
    DELETE,
    EXISTS,
    LIST,
    READ,
    Patching,
    refused,
)
from tests.mutants.wire import Request

ENDS = "a session exists after creation and stops existing after DELETE (3)"


def _deleting(change: Callable[[MemorySessions, SessionKey], bool]) -> Patching:
    """Do something else than to delete; return whether there was such a session."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        async def delete(self: MemorySessions, key: SessionKey) -> bool:
            return change(self, key)

        patch.setattr(MemorySessions, "delete", delete)

    return patching


def _deleted_too(taken: Callable[[SessionKey, SessionKey], bool]) -> Patching:
    """Delete all sessions that are taken together with one."""

    def delete(store: MemorySessions, key: SessionKey) -> bool:
        existed = store._find(key) is not None
        for (app, user), own in store._sessions.items():
            for id_ in list(own):
                one = SessionKey(app, user, id_)
                if one == key or taken(key, one):
                    del own[id_]
        return existed

    return _deleting(delete)


def _empty(store: MemorySessions, key: SessionKey) -> bool:
    session = store._find(key)
    if session is not None:
        session.events.clear()
    return session is not None


def _delete_if_unused(store: MemorySessions, key: SessionKey) -> bool:
    session = store._find(key)
    if session is not None and not session.events:
        del store._sessions[key.app, key.user][key.id]
    return session is not None


def _kept_in(route: str) -> Patching:
    """Keep what was deleted in the answers of a route: the list, or the session itself."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        gone: dict[SessionKey, StoredSession] = {}
        delete = MemorySessions.delete
        of_one, read = MemorySessions.of_user, SessionService.read

        async def deleted(self: MemorySessions, key: SessionKey) -> bool:
            found = await self.read(key)
            if found is not None:
                gone[key] = found
            return await delete(self, key)

        async def of_user(self: MemorySessions, app: str, user: str) -> Sequence[StoredSession]:
            left = [one for key, one in gone.items() if key[:2] == (app, user)]
            return [*await of_one(self, app, user), *left]

        async def read_again(self: SessionService, key: SessionKey) -> StoredSession:
            return gone[key] if key in gone else await read(self, key)

        patch.setattr(MemorySessions, "delete", deleted)
        if route == LIST:
            patch.setattr(MemorySessions, "of_user", of_user)
        else:
            patch.setattr(SessionService, "read", read_again)

    return patching


def _readable_once_more(patch: pytest.MonkeyPatch) -> None:
    """Keep each session that was read in a cache, and answer from it once more."""
    cached: dict[str, bytes] = {}

    def answer(answer: wire.Answer, request: Request) -> None:
        if answer.status == 200:
            cached[request.path] = answer.body
        elif request.path in cached:
            answer.status, answer.body = 200, cached.pop(request.path)

    wire.answered(READ, answer)(patch)


def _history_returns(patch: pytest.MonkeyPatch) -> None:
    """Keep the events of a deleted session for the next one of its id."""
    kept: dict[SessionKey, list[bytes]] = {}
    delete, create = MemorySessions.delete, MemorySessions.create

    async def deleted(self: MemorySessions, key: SessionKey) -> bool:
        session = self._find(key)
        if session is not None:
            kept[key] = list(session.events)
        return await delete(self, key)

    async def created(
        self: MemorySessions,
        key: SessionKey,
        initial: Mapping[str, Any],
        events: Sequence[StoredEvent],
        now: float,
    ) -> bool:
        made = await create(self, key, initial, events, now)
        session = self._find(key)
        if made and session is not None:
            session.events[:0] = kept.get(key, [])
        return made

    patch.setattr(MemorySessions, "delete", deleted)
    patch.setattr(MemorySessions, "create", created)


def _never_again(patch: pytest.MonkeyPatch) -> None:
    """Refuse to create a session with the id of one that was deleted."""
    gone: set[str] = set()
    wire.install(
        patch,
        wire.requested(DELETE, lambda request: gone.add(request.path)),
        refused(CREATE_WITH_ID, lambda request: request.path in gone, 409),
    )


MUTANTS: tuple[Mutant, ...] = (
    Mutant("delete_nothing", "API-06", ENDS, _deleting(lambda _store, _key: True)),
    Mutant("empty_the_session_only", "API-06", ENDS, _deleting(_empty)),
    Mutant("delete_only_sessions_without_events", "API-06", ENDS, _deleting(_delete_if_unused)),
    Mutant("keep_the_deleted_in_the_list", "API-06", ENDS, _kept_in(LIST), also=("API-04",)),
    Mutant("keep_the_deleted_readable", "API-06", ENDS, _kept_in(READ)),
    Mutant("read_the_deleted_once_more", "API-06", ENDS, _readable_once_more),
    Mutant("bring_back_the_history_of_the_deleted", "API-06", ENDS, _history_returns),
    Mutant("refuse_the_id_of_the_deleted", "API-06", ENDS, _never_again),
    Mutant(
        "delete_all_of_the_user",
        "API-06",
        EXISTS,
        _deleted_too(lambda key, one: key[:2] == one[:2]),
    ),
    Mutant(
        "delete_the_same_id_of_other_users",
        "API-06",
        EXISTS,
        _deleted_too(lambda key, one: (key.app, key.id) == (one.app, one.id)),
        also=("API-18",),
    ),
    Mutant(
        "delete_the_same_id_of_other_applications",
        "API-06",
        EXISTS,
        _deleted_too(lambda key, one: key[1:] == one[1:]),
    ),
    Mutant(
        "delete_what_begins_with_the_id",
        "API-06",
        EXISTS,
        _deleted_too(lambda key, one: key[:2] == one[:2] and one.id.startswith(key.id)),
    ),
    Mutant(
        "delete_ids_in_other_capitals",
        "API-06",
        EXISTS,
        _deleted_too(lambda key, one: key[:2] == one[:2] and one.id.lower() == key.id.lower()),
    ),
    Mutant(
        "fail_though_it_is_deleted",
        "API-06",
        "DELETE .../sessions/{session}: deletion result (4.2)",
        wire.statuses(DELETE, 500),
    ),
)
