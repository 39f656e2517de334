"""Mutants of the creation of sessions in API-server mode, with a generated id and a given one."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agentdouble.api_server.bodies import CreateSession
from agentdouble.api_server.memory import MemorySessions
from agentdouble.api_server.session_service import SessionService
from agentdouble.api_server.stores import SessionKey, StoredEvent, StoredSession
from tests.mutants import Mutant, lossy, wire
from tests.mutants.api_changes import (
    CREATE,
    CREATE_WITH_ID,
    EXISTS,
    IS_STRING,
    Json,
    OfText,
    Patching,
    refused,
)
from tests.mutants.wire import Change

CREATES = "POST .../sessions: session with generated `id` (4.2)"
TAKES_ID = "POST .../sessions/{session}: session with the given id (4.2)"


# ---- with a generated id


def _created(change: Callable[[Json], Any]) -> Change:
    """Change the session that a creation answers."""
    return wire.answers(CREATE, lambda found: change(found) if "id" in found else found)


def _with_generated_id(change: Callable[[str], Any]) -> Change:
    return _created(lambda found: {**found, "id": change(found["id"])})


def _same_id_for_all(patch: pytest.MonkeyPatch) -> None:
    seen: dict[str, str] = {}
    _with_generated_id(lambda id_: seen.setdefault("id", id_))(patch)


def _create_nothing(patch: pytest.MonkeyPatch) -> None:
    async def create(
        self: SessionService, app: str, user: str, _body: CreateSession | None
    ) -> StoredSession:
        return StoredSession(SessionKey(app, user, str(uuid.uuid4())), {}, self.now())

    patch.setattr(SessionService, "create", create)


def _before_creation(change: Callable[[MemorySessions, SessionKey], None]) -> Patching:
    """Do something to the store before each creation."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        stored = MemorySessions.create

        async def create(
            self: MemorySessions,
            key: SessionKey,
            initial: Mapping[str, Any],
            events: Sequence[StoredEvent],
            now: float,
        ) -> bool:
            change(self, key)
            return await stored(self, key, initial, events, now)

        patch.setattr(MemorySessions, "create", create)

    return patching


def _forget_the_others(store: MemorySessions, key: SessionKey) -> None:
    store._sessions.get((key.app, key.user), {}).clear()


def _keep_the_three_newest(store: MemorySessions, key: SessionKey) -> None:
    own = store._sessions.get((key.app, key.user), {})
    for id_ in list(own)[:-2]:
        del own[id_]


# ---- with a given id


def _stored_as(change: OfText, *, told: bool) -> Patching:
    """Store a session under another id than the given one; ``told`` is whether it is answered."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        create = SessionService.create_with_id

        async def create_with_id(
            self: SessionService, key: SessionKey, state: Mapping[str, Any] | None
        ) -> StoredSession:
            stored = await create(self, key._replace(id=change(key.id)), state)
            return stored if told else replace(stored, key=key)

        patch.setattr(SessionService, "create_with_id", create_with_id)

    return patching


def _answer_given_id(change: Callable[[str], Any]) -> Change:
    return wire.answers(
        CREATE_WITH_ID,
        lambda found: {**found, "id": change(found["id"])} if "id" in found else found,
    )


def _new_id(_id: str) -> str:
    return str(uuid.uuid4())


MUTANTS: tuple[Mutant, ...] = (
    # ---- API-02
    Mutant(
        "create_without_an_id",
        "API-02",
        IS_STRING,
        _created(lossy.without("id")),
    ),
    Mutant("create_with_null_for_an_id", "API-02", IS_STRING, _with_generated_id(lambda _id: None)),
    Mutant("create_with_an_empty_id", "API-02", IS_STRING, _with_generated_id(lambda _id: "")),
    Mutant(
        "create_with_a_number_for_an_id",
        "API-02",
        IS_STRING,
        _with_generated_id(lambda id_: uuid.UUID(id_).int % 10**9),
    ),
    Mutant("generate_the_same_id_for_all", "API-02", CREATES, _same_id_for_all),
    Mutant("tell_8_characters_of_the_id", "API-02", CREATES, _with_generated_id(lossy.cut(8))),
    Mutant("tell_the_id_in_capitals", "API-02", CREATES, _with_generated_id(str.upper)),
    Mutant("tell_another_id", "API-02", CREATES, _with_generated_id(_new_id)),
    Mutant(
        "put_the_session_into_an_envelope",
        "API-02",
        "create a session, read `id` from the response (4.2)",
        _created(lambda found: {"data": found}),
    ),
    Mutant("create_nothing", "API-02", EXISTS, _create_nothing),
    Mutant(
        "end_the_users_other_sessions",
        "API-02",
        EXISTS,
        _before_creation(_forget_the_others),
    ),
    Mutant(
        "keep_the_users_three_newest",
        "API-02",
        EXISTS,
        _before_creation(_keep_the_three_newest),
    ),
    Mutant(
        "refuse_an_empty_object",
        "API-02",
        "POST .../sessions: JSON object (examples send an empty object) (4.2)",
        refused(CREATE, lambda request: request.json == {}, 422),
    ),
    Mutant("fail_though_it_is_created", "API-02", CREATES, wire.statuses(CREATE, 500)),
    # ---- API-03
    Mutant("generate_an_id_anyway", "API-03", TAKES_ID, _stored_as(_new_id, told=True)),
    Mutant("store_it_under_a_generated_id", "API-03", TAKES_ID, _stored_as(_new_id, told=False)),
    Mutant("make_the_given_id_lower_case", "API-03", TAKES_ID, _stored_as(str.lower, told=True)),
    Mutant("store_it_in_lower_case", "API-03", TAKES_ID, _stored_as(str.lower, told=False)),
    Mutant(
        "store_32_characters_of_the_id",
        "API-03",
        TAKES_ID,
        _stored_as(lossy.cut(32), told=False),
    ),
    Mutant(
        "take_64_characters_of_the_id",
        "API-03",
        TAKES_ID,
        _stored_as(lossy.cut(64), told=True),
    ),
    Mutant(
        "replace_dots_and_colons_in_the_id",
        "API-03",
        TAKES_ID,
        _stored_as(lambda id_: re.sub(r"[.:]", "_", id_), told=True),
    ),
    Mutant(
        "replace_spaces_in_the_id",
        "API-03",
        TAKES_ID,
        _stored_as(lambda id_: id_.replace(" ", "_"), told=False),
    ),
    Mutant(
        "replace_what_is_beyond_ascii_in_the_id",
        "API-03",
        TAKES_ID,
        _stored_as(lossy.to_ascii, told=True),
    ),
    Mutant("misread_the_id_as_latin_1", "API-03", TAKES_ID, _answer_given_id(lossy.misread)),
    Mutant("answer_digits_as_a_number", "API-03", IS_STRING, _answer_given_id(lossy.to_number)),
    Mutant(
        "answer_the_same_id_always", "API-03", TAKES_ID, _answer_given_id(lambda _id: "session")
    ),
    Mutant("fail_though_the_id_is_free", "API-03", TAKES_ID, wire.statuses(CREATE_WITH_ID, 500)),
)
