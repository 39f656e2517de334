"""ADK's session and artifact services over the sessions and artifacts of the server.

They work within a run, which ``enter`` makes the current one of its task.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from google.adk.artifacts import BaseArtifactService
from google.adk.artifacts.base_artifact_service import ArtifactVersion
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.events import Event
from google.adk.platform import time
from google.adk.platform.uuid import set_id_provider
from google.adk.sessions import BaseSessionService
from google.adk.sessions import Session as AdkSession
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from google.genai import types

from agentdouble.agents import framework
from agentdouble.errors import ApiError, RunEndedError

try:  # private functions; a version without them hides nothing from its clients either
    from google.adk.auth.auth_credential import _redact_credential_secrets as redact
    from google.adk.events._internal_metadata import public_event
except ImportError:
    public_event = None

SHARED = "user:"
# An event without one of these has nothing that ADK hides from clients. Looking for them costs less
# than 1 µs, and redacting an event 60.
_HIDDEN = (b"redential", b"uthType", b"uth_type", b'AuthConfigs":{"', b"__adk_internal_")

_run: ContextVar[CurrentRun] = ContextVar("adk_run")
_random = random.Random()  # noqa: S311 (ids are no secrets)


def to_store(event: Event) -> framework.FrameworkEvent:
    """Return an event in its stored form."""
    dumped = _dumped(event)
    public = _public(event, dumped)
    delta = event.actions.state_delta
    return framework.FrameworkEvent(
        value=event,
        id=event.id,
        timestamp=event.timestamp,
        json=public,
        state_delta=json.loads(dumped)["actions"]["stateDelta"] if delta else {},
        private=b"" if public is dumped else dumped,
    )


def to_send(event: Event) -> bytes:
    """Return an event in the form for clients."""
    return _public(event, _dumped(event))


def _dumped(event: Event) -> bytes:
    dumped: str = event.model_dump_json(by_alias=True, exclude_none=True)
    return dumped.encode()


def _public(event: Event, dumped: bytes) -> bytes:
    for mark in _HIDDEN:
        if mark in dumped:
            return _redacted(event, dumped)
    return dumped


def _redacted(event: Event, dumped: bytes) -> bytes:
    if public_event is None:
        return dumped
    wire: Any = public_event(event).model_dump(mode="json", by_alias=True, exclude_none=True)
    public = json.dumps(redact(wire), ensure_ascii=False, separators=(",", ":")).encode()
    return dumped if public == dumped else public


class CurrentRun:
    """A run: the host whose sessions it uses, and the event that it stored last."""

    def __init__(self, host: framework.FrameworkHost) -> None:
        self.host = host
        self._stored: framework.FrameworkEvent | None = None

    def append(self, session: Any, event: Any) -> None:
        """Store an event in a session."""
        self._stored = stored = to_store(event)
        self.host.append(session.app_name, session.user_id, session.id, stored)

    def to_send(self, event: Any) -> framework.RunEvent:
        """Return an event for the client; most were just stored, and are not dumped again."""
        stored, self._stored = self._stored, None
        is_stored = stored is not None and stored.value is event
        json = stored.json if stored is not None and is_stored else to_send(event)
        return framework.RunEvent(json, bool(event.actions.artifact_delta))


def enter(host: framework.FrameworkHost) -> CurrentRun:
    """Make the services in this task use this host, and make ADK use its time and ids."""
    run = CurrentRun(host)
    _run.set(run)
    time.set_time_provider(host.now)
    set_id_provider(_new_id)
    return run


def _new_id() -> str:
    """Return a UUID as str(uuid4()), which takes five times as long and releases the GIL.

    Each event of a stream would wake the server's thread in vain.
    """
    digits = f"{_random.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def current() -> CurrentRun:
    """Return this run; raise RunEndedError outside of runs."""
    try:
        return _run.get()
    except LookupError:
        raise RunEndedError(
            "A service of the runner is used outside of a run. Use it in a callback or a tool, "
            "through the context.",
            app="",
        ) from None


class Artifacts(BaseArtifactService):  # type: ignore[misc,unused-ignore]
    """The artifacts of the server, for the run of the current context."""

    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        """Store a new version; a name without ``user:`` needs a session."""
        if session_id is None and not filename.startswith(SHARED):
            raise ValueError("Session ID must be provided for session-scoped artifacts.")
        part = types.Part.model_validate(artifact)
        wire = part.model_dump(mode="json", by_alias=True, exclude_none=True)
        artifacts = _artifacts(app_name, user_id, session_id)
        return await artifacts.save(filename, wire, custom_metadata)

    async def load_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> types.Part | None:
        """Return a version, the newest by default, or None."""
        artifact = await _artifacts(app_name, user_id, session_id).load(filename, version)
        return None if artifact is None else types.Part.model_validate_json(artifact)

    async def list_artifact_keys(
        self, *, app_name: str, user_id: str, session_id: str | None = None
    ) -> list[str]:
        """Return the names of a session's artifacts and of the user's."""
        return list(await _artifacts(app_name, user_id, session_id).names())

    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        """Delete every version."""
        await _artifacts(app_name, user_id, session_id).delete(filename)

    async def list_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[int]:
        """Return the numbers of the versions."""
        versions = await _artifacts(app_name, user_id, session_id).versions(filename)
        return [version["version"] for version in versions]

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        """Describe every version."""
        versions = await _artifacts(app_name, user_id, session_id).versions(filename)
        return [ArtifactVersion.model_validate(version) for version in versions]

    async def get_artifact_version(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> ArtifactVersion | None:
        """Describe a version, the newest by default, or return None."""
        versions = await self.list_artifact_versions(
            app_name=app_name, user_id=user_id, filename=filename, session_id=session_id
        )
        number = len(versions) - 1 if version is None else version
        return versions[number] if 0 <= number < len(versions) else None


def _artifacts(app: str, user: str, session: str | None) -> framework.HostArtifacts:
    return current().host.artifacts(app, user, session)


class AdkSessions(BaseSessionService):  # type: ignore[misc,unused-ignore]
    """The sessions of the server, for the run of the current context."""

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
        """Return a session with its events, or with the requested ones."""
        record = await current().host.session(app_name, user_id, session_id)
        if record is None:
            return None
        return to_adk(record, _chosen(record.events, config))

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """Return sessions without their events."""
        records = await current().host.sessions(app_name, user_id)
        return ListSessionsResponse(sessions=[to_adk(session) for session in records])

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

    Like ADK's own service, this stores an event only once, even if a caller appends it again.
    """
    for stored in reversed(events):
        if stored.invocation_id != event.invocation_id:
            return False
        if stored.id == event.id and stored == event:
            return True
    return False


def to_adk(session: framework.SessionRecord, chosen: Sequence[Event] | None = None) -> AdkSession:
    """Return a session as ADK's, with all of its events or the chosen ones."""
    return AdkSession(
        id=session.id,
        app_name=session.app,
        user_id=session.user,
        state=session.state,
        events=list(session.events if chosen is None else chosen),
        last_update_time=session.last_update,
    )


def _chosen(events: Sequence[Event], config: GetSessionConfig | None) -> Sequence[Event]:
    """Return the newest events that the configuration selects."""
    if config is None:
        return events
    if config.num_recent_events is not None:
        events = events[max(len(events) - config.num_recent_events, 0) :]
    if config.after_timestamp is not None:
        older = [n for n, event in enumerate(events) if event.timestamp < config.after_timestamp]
        events = events[older[-1] + 1 :] if older else events
    return events
