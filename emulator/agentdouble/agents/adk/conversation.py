"""Let agents of ADK answer where there is no server of sessions: in A2A applications.

For each turn a runner gets new services with the conversation: its history, state and artifacts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agentdouble.agents.adk.native_runner import import_sdk, runner_of
from agentdouble.agents.events import Event, Message, Part, WireEvent
from agentdouble.agents.session import Session

_SDK = (
    "google.adk.agents.run_config",
    "google.adk.apps",
    "google.adk.artifacts",
    "google.adk.events",
    "google.adk.memory",
    "google.adk.runners",
    "google.adk.sessions",
    "google.genai.types",
)


async def converse(
    native: Any, app: str, message: Message, session: Session
) -> AsyncIterator[WireEvent]:
    """Let an agent, a node or an App answer a message, and yield its events."""
    await import_sdk(app, *_SDK)
    from google.adk.agents.run_config import RunConfig, StreamingMode
    from google.adk.memory import InMemoryMemoryService
    from google.genai import types

    runner = runner_of(
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
    """Return a session service that has the session without this turn's events."""
    from google.adk.events import Event as AdkEvent
    from google.adk.sessions import InMemorySessionService

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
    from google.adk.artifacts import InMemoryArtifactService
    from google.genai import types

    class Artifacts(InMemoryArtifactService):  # type: ignore[misc,unused-ignore]
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

    return Artifacts()
