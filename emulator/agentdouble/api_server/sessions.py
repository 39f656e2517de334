"""The sessions of API-server mode (section 2.3)."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from agentdouble.api_server import events
from agentdouble.api_server.models import CreateSession, EventBody
from agentdouble.api_server.stores import SessionKey, SessionStore, StoredEvent, StoredSession
from agentdouble.core import ledger
from agentdouble.core.clock import Clock
from agentdouble.errors import ApiError, SessionNotFoundError


class SessionService:
    """The sessions of every application and user.

    Like the real server, it does not check that the application exists.
    """

    def __init__(self, store: SessionStore, clock: Clock) -> None:
        self.store = store
        self._clock = clock

    async def create(self, app: str, user: str, body: CreateSession | None) -> StoredSession:
        """Create a session from a body (API-02); raise ApiError if it cannot be created."""
        if body is None or ledger.choose("U-SESSION-CREATE") == "ignored":
            body = CreateSession()
        if body.options:
            raise ApiError(
                400, "Session options are not supported by the configured session service."
            )
        _check_imported(body.events or ())
        imported = [self._stored(event) for event in body.events or () if not event.partial]
        id_ = (body.session_id or "").strip() or str(uuid.uuid4())
        return await self._create(SessionKey(app, user, id_), body.state or {}, imported)

    async def create_with_id(
        self, key: SessionKey, state: Mapping[str, Any] | None
    ) -> StoredSession:
        """Create a session with a given id (API-03); raise ApiError if it exists."""
        if ledger.choose("U-SESSION-CREATE") == "ignored":
            state = None
        return await self._create(key, state or {}, ())

    async def read(self, key: SessionKey) -> StoredSession:
        """Return a session with its events (API-05); raise SessionNotFoundError."""
        session = await self.store.read(key)
        if session is None:
            ledger.choose("U-SESSION-UNKNOWN")
            raise SessionNotFoundError("Session not found")
        return session

    async def of_user(self, app: str, user: str) -> Sequence[StoredSession]:
        """Return a user's sessions without their events (API-04)."""
        return await self.store.of_user(app, user)

    async def delete(self, key: SessionKey) -> None:
        """Delete a session (API-06); the ledger decides whether an unknown one is an error."""
        existed = await self.store.delete(key)
        if not existed and ledger.choose("U-SESSION-DELETE") == "404-unknown":
            raise SessionNotFoundError("Session not found")

    async def update(self, key: SessionKey, delta: Mapping[str, Any]) -> StoredSession:
        """Change a session's state and return it; raise SessionNotFoundError."""
        event = events.build(
            invocation_id=f"p-{uuid.uuid4()}",
            author=events.USER,
            timestamp=self.now(),
            actions={"stateDelta": delta},
        )
        if not await self.store.append(key, [events.stored(event)]):
            raise SessionNotFoundError("Session not found")
        session = await self.read(key)
        # As on the real server, temporary keys are only in this answer.
        return dataclasses.replace(session, state={**session.state, **delta})

    def now(self) -> float:
        """Return the platform's time in Unix seconds."""
        return self._clock.now().timestamp()

    async def _create(
        self,
        key: SessionKey,
        state: Mapping[str, Any],
        imported: Sequence[StoredEvent],
    ) -> StoredSession:
        if not await self.store.create(key, state, imported, self.now()):
            _refuse_duplicate(key.id)
        return await self.read(key)

    def _stored(self, event: EventBody) -> StoredEvent:
        return events.stored(events.imported(event, self.now()))


def _refuse_duplicate(id_: str) -> None:
    """Raise ApiError, unless the ledger returns the existing session instead."""
    answer = ledger.choose("U-SESSION-DUPLICATE")
    if answer != "existing":
        raise ApiError(int(answer), f"Session already exists: {id_}")


# Calls by which ADK asks a user; an import could otherwise forge a confirmation.
_ASKING = {"adk_request_confirmation", "adk_request_credential", "adk_request_input"}


def _check_imported(imported: Sequence[EventBody]) -> None:
    """Raise ApiError for an event with actions, or with a call or an answer of ADK's own."""
    for index, event in enumerate(imported):
        if event.long_running_tool_ids:
            raise _cannot_include(index, "long-running tool IDs")
        if event.actions != type(event.actions)():
            raise _cannot_include(index, "event actions")
        parts = (event.content.parts if event.content else None) or ()
        named = [call for part in parts for call in (part.function_call, part.function_response)]
        if any(call is not None and call.name in _ASKING for call in named):
            raise _cannot_include(index, "ADK protocol function calls")


def _cannot_include(index: int, content: str) -> ApiError:
    return ApiError(400, f"Session initialization event {index} cannot include {content}.")
