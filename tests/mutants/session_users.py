"""Mutants that mix up the users of sessions in API-server mode."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

from agentdouble.agents.events import Event
from agentdouble.api_server.agent_run import SessionBackend
from agentdouble.api_server.memory import MemorySessions
from agentdouble.api_server.stores import SessionKey
from agentdouble.api_server.wire import loads
from tests.mutants import Mutant, lossy, wire
from tests.mutants.api_changes import (
    ARTIFACTS,
    CREATE,
    CREATE_WITH_ID,
    DELETE,
    READ,
    RUN,
    RUN_SSE,
    Json,
    OfText,
    Patching,
    all_of,
    in_path,
    listed_too,
    other_user_of_app,
    refused,
    segments,
    user_of,
)
from tests.mutants.wire import Request

SEPARATE = "isolating session context and permissions (5); {user} is the user id (4.2)"


def _as_owner(*routes: str) -> Patching:
    """Take the user who created a session for the user of requests that name its id."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        owners: dict[str, str] = {}

        def note(found: Any, request: Request) -> Any:
            if "id" in found:
                owners.setdefault(found["id"], user_of(request))
            return found

        def as_owner(request: Request) -> None:
            parts = segments(request)
            parts[3] = owners.get(parts[5], parts[3])
            request.path = "/" + "/".join(parts)

        def in_body(body: Json) -> Json:
            owner = owners.get(str(body.get("sessionId")), body.get("userId"))
            return {**body, "userId": owner} if "userId" in body else body

        runs = [wire.requests(route, in_body) for route in routes if route in (RUN, RUN_SSE)]
        others = [wire.requested(one, as_owner) for one in routes if one not in (RUN, RUN_SSE)]
        noting = [wire.answers(route, note) for route in (CREATE, CREATE_WITH_ID)]
        wire.install(patch, *noting, *runs, *others)

    return patching


def _users(change: OfText) -> Patching:
    """Take users for one whose ids are alike after a change."""

    def in_body(body: Json) -> Json:
        return {**body, "userId": change(body["userId"])} if "userId" in body else body

    return all_of(
        in_path("* /apps/{app}/users/{user}/*", 3, change),
        wire.requests(RUN, in_body),
        wire.requests(RUN_SSE, in_body),
    )


def _without_accents(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text)
    return "".join(character for character in plain if not unicodedata.combining(character))


def _refuse_ids_of_others(patch: pytest.MonkeyPatch) -> None:
    owners: dict[str, str] = {}

    def taken(request: Request) -> bool:
        return owners.setdefault(segments(request)[5], user_of(request)) != user_of(request)

    refused(CREATE_WITH_ID, taken, 409)(patch)


def _told_of_others(alike: Callable[[SessionKey, SessionKey], bool]) -> Patching:
    """Give an agent the history of all sessions that are alike to its own."""

    async def told(self: SessionBackend) -> tuple[Event, ...]:
        async def found() -> list[bytes]:
            store = self._store
            assert isinstance(store, MemorySessions)
            return [
                event
                for (app, user), sessions in store._sessions.items()
                for id_, session in sessions.items()
                if alike(self._key, SessionKey(app, user, id_))
                for event in session.events
            ]

        return tuple(Event.from_wire(loads(event)) for event in await self._queries.ask(found))

    return lambda patch: patch.setattr(SessionBackend, "history", told)


MUTANTS: tuple[Mutant, ...] = (
    Mutant("read_as_the_owner", "API-18", SEPARATE, _as_owner(READ)),
    Mutant("run_as_the_owner", "API-18", SEPARATE, _as_owner(RUN)),
    Mutant("stream_as_the_owner", "API-18", SEPARATE, _as_owner(RUN_SSE)),
    Mutant("delete_as_the_owner", "API-18", SEPARATE, _as_owner(DELETE)),
    Mutant("list_artifacts_as_the_owner", "API-18", SEPARATE, _as_owner(ARTIFACTS)),
    Mutant(
        "do_everything_as_the_owner",
        "API-18",
        SEPARATE,
        _as_owner(READ, RUN, RUN_SSE, DELETE, ARTIFACTS),
    ),
    Mutant(
        "list_the_sessions_of_everybody",
        "API-18",
        SEPARATE,
        listed_too(other_user_of_app),
    ),
    Mutant("refuse_an_id_that_another_user_has", "API-18", SEPARATE, _refuse_ids_of_others),
    Mutant("take_users_in_other_capitals_for_one", "API-18", SEPARATE, _users(str.lower)),
    Mutant("take_16_characters_of_a_user", "API-18", SEPARATE, _users(lossy.cut(16))),
    Mutant(
        "take_a_user_up_to_the_at_sign",
        "API-18",
        SEPARATE,
        _users(lambda user: user.partition("@")[0] or user),
    ),
    Mutant("take_users_without_accents_for_one", "API-18", SEPARATE, _users(_without_accents)),
    Mutant(
        "tell_an_agent_what_other_users_said",
        "API-18",
        SEPARATE,
        _told_of_others(lambda key, one: key.app == one.app),
    ),
    Mutant(
        "tell_an_agent_what_was_said_under_its_id",
        "API-18",
        SEPARATE,
        _told_of_others(lambda key, one: (key.app, key.id) == (one.app, one.id)),
    ),
)
