"""Mutants of the sessions of API-server mode."""

from __future__ import annotations

import re
import unicodedata
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agentdouble.agents.events import Event
from agentdouble.api_server.agent_run import SessionBackend
from agentdouble.api_server.bodies import CreateSession
from agentdouble.api_server.memory import MemorySessions
from agentdouble.api_server.session_service import SessionService
from agentdouble.api_server.stores import SessionKey, StoredEvent, StoredSession
from agentdouble.api_server.wire import loads
from agentdouble.errors import SessionNotFoundError
from tests.mutants import Mutant, lossy, wire
from tests.mutants.api_changes import (
    ARTIFACTS,
    CREATE,
    CREATE_WITH_ID,
    DELETE,
    LIST,
    READ,
    RUN,
    RUN_SSE,
    Json,
    OfText,
    Patching,
    all_of,
    each_of_history,
    has,
    is_reply,
    of_history,
    refuse,
    refused,
    segments,
    user_of,
    with_content,
    with_parts,
    with_texts,
)
from tests.mutants.wire import Change, Request

HALF_AN_HOUR = 30 * 60

CREATES = "POST .../sessions: session with generated `id` (4.2)"
IS_STRING = "Has an `id` field (string) (2.3)"
EXISTS = "A session exists after creation and stops existing after DELETE (3)"
TAKES_ID = "POST .../sessions/{session}: session with the given id (4.2)"
LISTS = "GET /apps/{app}/users/{user}/sessions: list of sessions (4.2)"
HISTORY = "Get session returns the session including its history of events (2.3)"
ENDS = "a session exists after creation and stops existing after DELETE (3)"
SEPARATE = "isolating session context and permissions (5); {user} is the user id (4.2)"

Owner = tuple[str, str]


# ---- creation


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


# ---- lists


def _listed(change: Callable[[list[Any]], Any]) -> Change:
    return wire.answers(LIST, lambda found: change(found) if isinstance(found, list) else found)


def _listed_too(shown: Callable[[Owner, Owner], bool]) -> Patching:
    """List the sessions of all owners that are shown to an owner: application and user."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        of_one = MemorySessions.of_user

        async def of_user(self: MemorySessions, app: str, user: str) -> Sequence[StoredSession]:
            owners = [
                one for one in self._sessions if one == (app, user) or shown((app, user), one)
            ]
            return [session for owner in owners for session in await of_one(self, *owner)]

        patch.setattr(MemorySessions, "of_user", of_user)

    return patching


def _listed_if(shown: Callable[[int], bool]) -> Patching:
    """List only sessions of some numbers of events."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        of_all = MemorySessions.of_user

        async def of_user(self: MemorySessions, app: str, user: str) -> Sequence[StoredSession]:
            found, own = await of_all(self, app, user), self._sessions.get((app, user), {})
            return [one for one in found if shown(len(own[one.key.id].events))]

        patch.setattr(MemorySessions, "of_user", of_user)

    return patching


def _stale(route: str, *, filled: bool = False) -> Patching:
    """Answer again what was answered first for a path; ``filled`` is: once it has an id."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        seen: dict[str, Any] = {}

        def answer(found: Any, request: Request) -> Any:
            right = "id" in found if filled else isinstance(found, list)
            return seen.setdefault(request.path, found) if right else found

        wire.answers(route, answer)(patch)

    return patching


def _list_generated_alone(patch: pytest.MonkeyPatch) -> None:
    given: set[str] = set()
    wire.install(
        patch,
        wire.requested(CREATE_WITH_ID, lambda request: given.add(segments(request)[5])),
        _listed(lambda found: [one for one in found if one["id"] not in given]),
    )


def _other_user_of_app(asked: Owner, owner: Owner) -> bool:
    return asked[0] == owner[0]


# ---- reading


def _first_of_user(patch: pytest.MonkeyPatch) -> None:
    """Return the session that was read first to everybody who reads one of that user."""
    first: dict[str, str] = {}

    def first_path(request: Request) -> None:
        request.path = first.setdefault("/".join(segments(request)[:4]), request.path)

    wire.requested(READ, first_path)(patch)


def _read(change: Callable[[SessionService, StoredSession], None]) -> Patching:
    """Do something with each session that is read; it may raise SessionNotFoundError."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        found = SessionService.read

        async def read(self: SessionService, key: SessionKey) -> StoredSession:
            session = await found(self, key)
            change(self, session)
            return session

        patch.setattr(SessionService, "read", read)

    return patching


def _expire(service: SessionService, session: StoredSession) -> None:
    if service.now() - session.last_update > HALF_AN_HOUR:
        raise SessionNotFoundError("Session not found")


def _joined(events: list[Json]) -> list[Json]:
    """Return events in which those of one role that follow each other are one."""
    joined: list[Json] = []
    for event in events:
        role = (event.get("content") or {}).get("role")
        last = joined[-1]["content"] if joined else {}
        if last.get("role") == role:
            joined[-1] = {
                **joined[-1],
                "content": {**last, "parts": last["parts"] + event["content"]["parts"]},
            }
        else:
            joined.append(event)
    return joined


def _without_calls(event: Json) -> Any:
    return wire.DROP if has(event, "functionCall") else event


def _without_replies(event: Json) -> Any:
    return wire.DROP if is_reply(event) else event


# ---- deletion


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


# ---- users


def _as_owner(*routes: str) -> Patching:
    """Take the user who created a session for the user of requests that name its id."""

    def patching(patch: pytest.MonkeyPatch) -> None:
        owners: dict[str, str] = {}

        def note(found: Any, request: Request) -> Any:
            if "id" in found:
                owners.setdefault(found["id"], user_of(request))
            return found

        def in_path(request: Request) -> None:
            parts = segments(request)
            parts[3] = owners.get(parts[5], parts[3])
            request.path = "/" + "/".join(parts)

        def in_body(body: Json) -> Json:
            owner = owners.get(str(body.get("sessionId")), body.get("userId"))
            return {**body, "userId": owner} if "userId" in body else body

        runs = [wire.requests(route, in_body) for route in routes if route in (RUN, RUN_SSE)]
        others = [wire.requested(one, in_path) for one in routes if one not in (RUN, RUN_SSE)]
        noting = [wire.answers(route, note) for route in (CREATE, CREATE_WITH_ID)]
        wire.install(patch, *noting, *runs, *others)

    return patching


def _users(change: OfText) -> Patching:
    """Take users for one whose ids are alike after a change."""

    def in_path(request: Request) -> None:
        parts = segments(request)
        parts[3] = change(parts[3])
        request.path = "/" + "/".join(parts)

    def in_body(body: Json) -> Json:
        return {**body, "userId": change(body["userId"])} if "userId" in body else body

    return all_of(
        wire.requested("* /apps/{app}/users/{user}/*", in_path),
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
    # ---- API-04
    Mutant("list_only_the_first_session", "API-04", LISTS, _listed(lambda found: found[:1])),
    Mutant("list_only_the_newest_session", "API-04", LISTS, _listed(lambda found: found[-1:])),
    Mutant("list_only_ten_sessions", "API-04", LISTS, _listed(lambda found: found[:10])),
    Mutant("list_no_session", "API-04", LISTS, _listed(lambda _found: [])),
    Mutant("list_what_was_there_first", "API-04", LISTS, _stale(LIST)),
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
    Mutant("list_all_users_sessions", "API-04", LISTS, _listed_too(_other_user_of_app)),
    Mutant(
        "list_sessions_of_other_applications",
        "API-04",
        "{app} is the agent application name (4.2)",
        _listed_too(lambda asked, owner: asked[1] == owner[1]),
    ),
    Mutant(
        "list_sessions_of_users_that_begin_alike",
        "API-04",
        LISTS,
        _listed_too(lambda asked, one: asked[0] == one[0] and one[1].startswith(asked[1])),
    ),
    Mutant(
        "list_sessions_of_users_in_other_capitals",
        "API-04",
        LISTS,
        _listed_too(lambda asked, one: asked[1].casefold() == one[1].casefold()),
    ),
    Mutant(
        "list_nothing_for_a_user_beyond_ascii",
        "API-04",
        LISTS,
        wire.answers(LIST, lambda found, request: found if user_of(request).isascii() else []),
    ),
    # ---- API-05
    Mutant("lose_the_first_event", "API-05", HISTORY, of_history(lambda events: events[1:])),
    Mutant("lose_the_last_event", "API-05", HISTORY, of_history(lambda events: events[:-1])),
    Mutant("keep_the_last_two_events", "API-05", HISTORY, of_history(lambda events: events[-2:])),
    Mutant("keep_the_last_ten_events", "API-05", HISTORY, of_history(lambda events: events[-10:])),
    Mutant("keep_the_first_six_events", "API-05", HISTORY, of_history(lambda events: events[:6])),
    Mutant("lose_the_replies", "API-05", HISTORY, each_of_history(_without_replies)),
    Mutant("lose_the_tool_calls", "API-05", HISTORY, each_of_history(_without_calls)),
    Mutant("reverse_the_history", "API-05", HISTORY, of_history(lambda events: events[::-1])),
    Mutant(
        "tell_every_event_twice",
        "API-05",
        HISTORY,
        of_history(lambda events: [one for one in events for _ in range(2)]),
    ),
    Mutant("join_events_of_one_role", "API-05", HISTORY, of_history(_joined)),
    Mutant(
        "tell_events_without_content",
        "API-05",
        "An event has `content` (2.4); history of events (2.3)",
        each_of_history(lambda event: {**event, "content": None}),
    ),
    Mutant(
        "tell_only_the_first_part",
        "API-05",
        HISTORY,
        each_of_history(with_parts(lambda parts: parts[:1])),
    ),
    Mutant(
        "tell_users_messages_as_the_models",
        "API-05",
        "role: `user` for user messages, `model` in replies (2.2)",
        each_of_history(with_content(lambda content: {**content, "role": "model"})),
    ),
    Mutant(
        "strip_texts_of_the_history",
        "API-05",
        HISTORY,
        each_of_history(with_texts(str.strip)),
    ),
    Mutant(
        "cut_texts_of_the_history_at_256",
        "API-05",
        HISTORY,
        each_of_history(with_texts(lossy.cut(256))),
    ),
    Mutant(
        "join_the_lines_of_the_history",
        "API-05",
        HISTORY,
        each_of_history(with_texts(lossy.to_one_line)),
    ),
    Mutant(
        "lose_what_is_beyond_ascii_in_the_history",
        "API-05",
        HISTORY,
        each_of_history(with_texts(lossy.to_ascii)),
    ),
    Mutant("read_the_users_first_session", "API-05", HISTORY, _first_of_user),
    Mutant("read_what_was_there_first", "API-05", HISTORY, _stale(READ, filled=True)),
    Mutant(
        "find_no_session_without_events",
        "API-05",
        EXISTS,
        wire.answered(
            READ,
            lambda answer, _one: refuse(answer, 404) if b'"events":[]' in answer.body else None,
        ),
    ),
    Mutant("forget_sessions_after_half_an_hour", "API-05", EXISTS, _read(_expire)),
    Mutant(
        "read_another_id",
        "API-05",
        HISTORY,
        wire.answers(READ, lambda found: {**found, "id": "session"} if "id" in found else found),
    ),
    # ---- API-06
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
    # ---- API-18
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
        _listed_too(_other_user_of_app),
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
