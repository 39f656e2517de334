"""ADK's session service over the sessions of the server.

A session that ADK gets has its own list of events, and the events are the objects that earlier
runs made or parsed: nothing is copied for a turn. ADK does not change stored events; a plugin or a
callback that does would change what later turns see until the events are parsed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.events import Event
from google.adk.sessions import BaseSessionService
from google.adk.sessions import Session as AdkSession
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse

from agentdouble.agents.adk.current import current
from agentdouble.agents.framework import SessionRecord
from agentdouble.errors import ApiError


class Sessions(BaseSessionService):  # type: ignore[misc,unused-ignore]
    """The sessions of the server, for the run in whose context they are asked for."""

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> AdkSession:
        """Create a session; raise ADK's AlreadyExistsError."""
        try:
            return to_adk(await current().host.create(app_name, user_id, session_id, state or {}))
        except ApiError:
            raise AlreadyExistsError(f"Session with id {session_id} already exists.") from None

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> AdkSession | None:
        """Return a session with its events, or those that are asked for."""
        found = await current().host.session(app_name, user_id, session_id)
        if found is None:
            return None
        return to_adk(found, _chosen(found.events, config))

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """Return sessions without their events."""
        found = await current().host.sessions(app_name, user_id)
        return ListSessionsResponse(sessions=[to_adk(one) for one in found])

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session."""
        await current().host.delete(app_name, user_id, session_id)

    async def append_event(self, session: AdkSession, event: Event) -> Event:
        """Store an event that is not partial or stored already, and add it to the session."""
        if event.partial or _is_stored(event, session.events):
            return event
        await super().append_event(session, event)
        session.last_update_time = event.timestamp
        current().append(session, event)
        return event


def _is_stored(event: Event, events: Sequence[Event]) -> bool:
    """Return whether an equal event of the same invocation is stored already.

    ADK's own service stores an event only once that an agent or a caller gives it again.
    """
    for one in reversed(events):
        if one.invocation_id != event.invocation_id:
            return False
        if one.id == event.id and one == event:
            return True
    return False


def to_adk(session: SessionRecord, chosen: Sequence[Event] | None = None) -> AdkSession:
    """Return a session as ADK's, with all of its events or those that are chosen."""
    return AdkSession(
        id=session.id,
        app_name=session.app,
        user_id=session.user,
        state=session.state,
        events=list(session.events if chosen is None else chosen),
        last_update_time=session.last_update,
    )


def _chosen(events: Sequence[Event], config: GetSessionConfig | None) -> Sequence[Event]:
    """Return the newest events that a caller wants."""
    if config is None:
        return events
    if config.num_recent_events is not None:
        events = events[max(len(events) - config.num_recent_events, 0) :]
    if config.after_timestamp is not None:
        older = [n for n, one in enumerate(events) if one.timestamp < config.after_timestamp]
        events = events[older[-1] + 1 :] if older else events
    return events
