"""ADK's runners for one application, with or without a server of sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.artifacts import InMemoryArtifactService
from google.adk.auth.credential_service.in_memory_credential_service import (
    InMemoryCredentialService,
)
from google.adk.events import Event as AdkEvent
from google.adk.memory import InMemoryMemoryService
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from agentdouble.agents.adk.services import AdkSessions, Artifacts, enter, to_adk
from agentdouble.agents.agent import Event, Message, Part, Session, WireEvent
from agentdouble.agents.framework import RunInput

__all__ = ["InMemoryCredentialService", "InMemoryMemoryService", "enter", "to_adk"]


def server_runner(native: Any, app: str) -> Any:
    """Return a runner that uses the sessions and artifacts of the server."""
    return _runner(native, app, session_service=AdkSessions(), artifact_service=Artifacts())


def _runner(native: Any, app: str, **services: Any) -> Any:
    """Return a runner of ADK; an App keeps its plugins and configuration."""
    if isinstance(native, App):
        return Runner(app=native, app_name=app, **services)
    if isinstance(native, BaseAgent):
        return Runner(agent=native, app_name=app, **services)
    return Runner(node=native, app_name=app, **services)


def content(message: Mapping[str, Any] | None) -> Any:
    """Return the Content of a message's JSON."""
    return None if message is None else types.Content.model_validate(message)


def run_config(request: RunInput) -> Any:
    """Return the RunConfig of a request."""
    fields = {"custom_metadata": request.custom_metadata, "service_tier": request.service_tier}
    return RunConfig(
        streaming_mode=StreamingMode.SSE if request.streaming else StreamingMode.NONE,
        # An older version refuses the names of fields that it does not have.
        **{name: value for name, value in fields.items() if name in RunConfig.model_fields},
    )


async def converse(
    native: Any, app: str, message: Message, session: Session
) -> AsyncIterator[WireEvent]:
    """Let an agent, a node or an App answer a message, and yield its events."""
    runner = _runner(
        native,
        app,
        session_service=await _sessions(app, session),
        artifact_service=_artifacts(session),
        memory_service=InMemoryMemoryService(),
    )
    content = {"role": "user", "parts": [part.wire for part in message.parts]}
    mode = StreamingMode.SSE if session.streaming else StreamingMode.NONE
    events = runner.run_async(
        user_id=session.user_id,
        session_id=session.id,
        new_message=types.Content.model_validate(content),
        run_config=RunConfig(streaming_mode=mode),
    )
    async for event in events:
        yield WireEvent(event.model_dump(mode="json", by_alias=True, exclude_none=True))


async def _sessions(app: str, session: Session) -> Any:
    """Return a session service that contains the session, but not this turn's events."""
    service = InMemorySessionService()  # type: ignore[no-untyped-call,unused-ignore]
    seeded = await service.create_session(
        app_name=app, user_id=session.user_id, session_id=session.id, state=dict(session.state)
    )
    for event in await session.history():
        if event.more.get("invocationId") != session.invocation_id:
            await service.append_event(seeded, AdkEvent.model_validate(_wire(event)))
    return service


def _wire(event: Event) -> dict[str, Any]:
    content = {"role": event.role, "parts": [part.wire for part in event.parts]}
    fields = {"content": content} if event.parts else {}
    return {**event.more, **fields, "author": event.author}


def _artifacts(session: Session) -> Any:
    """Return an artifact service that saves and loads artifacts through our session."""

    class SessionArtifacts(InMemoryArtifactService):  # type: ignore[misc,unused-ignore]
        async def save_artifact(self, *, filename: str, artifact: Any, **_: Any) -> int:
            wire = artifact.model_dump(mode="json", by_alias=True, exclude_none=True)
            version = await session.save_artifact(filename, Part(wire))
            session.take_saved()  # the runner's own events already report it
            return version

        async def load_artifact(
            self, *, filename: str, version: int | None = None, **_: Any
        ) -> Any:
            part = await session.load_artifact(filename, version)
            return None if part is None else types.Part.model_validate(dict(part.wire))

        async def list_artifact_keys(self, **_: Any) -> list[str]:
            return list(await session.artifacts())

    return SessionArtifacts()
