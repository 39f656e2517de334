"""Mutants of the lists of sessions in API-server mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from agentdouble.api_server.memory import MemorySessions
from agentdouble.api_server.stores import StoredSession
from tests.mutants import Mutant, wire
from tests.mutants.api_changes import (
    CREATE_WITH_ID,
    IS_STRING,
    LIST,
    Patching,
    listed_too,
    other_user_of_app,
    segments,
    stale,
    user_of,
)
from tests.mutants.wire import Change

LISTS = "GET /apps/{app}/users/{user}/sessions: list of sessions (4.2)"


def _listed(change: Callable[[list[Any]], Any]) -> Change:
    return wire.answers(LIST, lambda found: change(found) if isinstance(found, list) else found)


def _listed_if(shown: Callable[[int], bool]) -> Patching:
    """List only sessions of some numbers of events."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        of_all = MemorySessions.of_user

        async def of_user(self: MemorySessions, app: str, user: str) -> Sequence[StoredSession]:
            found, own = await of_all(self, app, user), self._sessions.get((app, user), {})
            return [one for one in found if shown(len(own[one.key.id].events))]

        patch.setattr(MemorySessions, "of_user", of_user)

    return patching


def _list_generated_alone(patch: pytest.MonkeyPatch) -> None:
    given: set[str] = set()
    wire.install(
        patch,
        wire.requested(CREATE_WITH_ID, lambda request: given.add(segments(request)[5])),
        _listed(lambda found: [one for one in found if one["id"] not in given]),
    )


MUTANTS: tuple[Mutant, ...] = (
    Mutant("list_only_the_first_session", "API-04", LISTS, _listed(lambda found: found[:1])),
    Mutant("list_only_the_newest_session", "API-04", LISTS, _listed(lambda found: found[-1:])),
    Mutant("list_only_ten_sessions", "API-04", LISTS, _listed(lambda found: found[:10])),
    Mutant("list_no_session", "API-04", LISTS, _listed(lambda _found: [])),
    Mutant("list_what_was_there_first", "API-04", LISTS, stale(LIST)),
    Mutant("list_only_sessions_with_events", "API-04", LISTS, _listed_if(lambda count: count > 0)),
    Mutant(
        "list_only_sessions_without_events",
        "API-04",
        LISTS,
        _listed_if(lambda count: count == 0),
    ),
    Mutant("list_only_generated_ids", "API-04", LISTS, _list_generated_alone),
    Mutant(
        "list_other_ids",
        "API-04",
        LISTS,
        _listed(lambda found: [{**one, "id": one["id"][:8]} for one in found]),
    ),
    Mutant(
        "list_sessions_without_ids",
        "API-04",
        IS_STRING,
        _listed(lambda found: [{**one, "id": None} for one in found]),
    ),
    Mutant("list_all_users_sessions", "API-04", LISTS, listed_too(other_user_of_app)),
    Mutant(
        "list_sessions_of_other_applications",
        "API-04",
        "{app} is the agent application name (4.2)",
        listed_too(lambda asked, owner: asked[1] == owner[1]),
    ),
    Mutant(
        "list_sessions_of_users_that_begin_alike",
        "API-04",
        LISTS,
        listed_too(lambda asked, one: asked[0] == one[0] and one[1].startswith(asked[1])),
    ),
    Mutant(
        "list_sessions_of_users_in_other_capitals",
        "API-04",
        LISTS,
        listed_too(lambda asked, one: asked[1].casefold() == one[1].casefold()),
    ),
    Mutant(
        "list_nothing_for_a_user_beyond_ascii",
        "API-04",
        LISTS,
        wire.answers(LIST, lambda found, request: found if user_of(request).isascii() else []),
    ),
)
