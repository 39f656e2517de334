"""Applications of ADK, run by ADK's own runner, with or without a server of sessions."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from contextvars import ContextVar
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from agentdouble.agents.agent import Event, Message, Part, Session, WireEvent
from agentdouble.agents.framework import (
    Framework,
    FrameworkEvent,
    Host,
    RunEvent,
    RunInput,
    SessionRecord,
)
from agentdouble.core.threads import import_in_thread
from agentdouble.errors import AgentLoadError, RunEndedError

if TYPE_CHECKING:
    from google.adk.events import Event as AdkEvent

# An event without one of these has nothing that ADK hides from clients. Looking for them costs less
# than 1 µs, and redacting an event 60.
_HIDDEN = (b"redential", b"uthType", b"uth_type", b'AuthConfigs":{"', b"__adk_internal_")


def to_store(event: AdkEvent) -> FrameworkEvent:
    """Return an event in its stored form."""
    dumped = _dumped(event)
    public = _public(event, dumped)
    delta = event.actions.state_delta
    return FrameworkEvent(
        value=event,
        id=event.id,
        timestamp=event.timestamp,
        json=public,
        state_delta=json.loads(dumped)["actions"]["stateDelta"] if delta else {},
        private=b"" if public is dumped else dumped,
    )


def to_send(event: AdkEvent) -> bytes:
    """Return an event in the form for clients."""
    return _public(event, _dumped(event))


def _dumped(event: AdkEvent) -> bytes:
    dumped: str = event.model_dump_json(by_alias=True, exclude_none=True)
    return dumped.encode()


def _public(event: AdkEvent, dumped: bytes) -> bytes:
    for mark in _HIDDEN:
        if mark in dumped:
            return _redacted(event, dumped)
    return dumped


def _redacted(event: AdkEvent, dumped: bytes) -> bytes:
    # Private functions; a version without them hides nothing from its clients either.
    try:
        from google.adk.auth.auth_credential import _redact_credential_secrets as redact
        from google.adk.events._internal_metadata import public_event
    except ImportError:
        return dumped
    wire: Any = public_event(event).model_dump(mode="json", by_alias=True, exclude_none=True)
    public = json.dumps(redact(wire), ensure_ascii=False, separators=(",", ":")).encode()
    return dumped if public == dumped else public


class CurrentRun:
    """A run: the host whose sessions it uses, and the event that it stored last."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._stored: FrameworkEvent | None = None

    def append(self, session: Any, event: Any) -> None:
        """Store an event in a session."""
        self._stored = stored = to_store(event)
        self.host.append(session.app_name, session.user_id, session.id, stored)

    def to_send(self, event: Any) -> RunEvent:
        """Return an event for the client; most were just stored, and are not dumped again."""
        stored, self._stored = self._stored, None
        is_stored = stored is not None and stored.value is event
        json = stored.json if stored is not None and is_stored else to_send(event)
        return RunEvent(json, bool(event.actions.artifact_delta))


_run: ContextVar[CurrentRun] = ContextVar("adk_run")


def enter(host: Host) -> CurrentRun:
    """Make the services use this host in this task, and ADK its time."""
    from google.adk.platform import time

    run = CurrentRun(host)
    _run.set(run)
    time.set_time_provider(host.now)
    return run


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


async def import_sdk(app: str, *modules: str) -> None:
    """Import modules of ADK; raise AgentLoadError if the installed version is too old for them."""
    try:
        await import_in_thread(*modules)
    except ImportError as error:
        raise AgentLoadError(
            f"The agent of {app!r} needs google-adk 2.2 or newer, and {version('google-adk')} is "
            f"installed ({error}). Install a newer one, or make the agent a runtime with an "
            "interpreter of its own.",
            app=app,
        ) from error


def runner_of(native: Any, app: str, **services: Any) -> Any:
    """Return a runner of ADK; an App keeps its plugins and configuration."""
    from google.adk.agents import BaseAgent
    from google.adk.apps import App
    from google.adk.runners import Runner

    if isinstance(native, App):
        return Runner(app=native, app_name=app, **services)
    if isinstance(native, BaseAgent):
        return Runner(agent=native, app_name=app, **services)
    return Runner(node=native, app_name=app, **services)


_SDK = (
    "google.adk.agents.run_config",
    "google.adk.apps",
    "google.adk.auth.credential_service.in_memory_credential_service",
    "google.adk.memory",
    "google.adk.runners",
    "agentdouble.agents.adk.services",
)


class AdkApplication:
    """The Framework of an agent, a node or an App; ``before`` is that of its earlier code."""

    def __init__(self, native: Any, app: str, before: Framework | None) -> None:
        self._native = native
        self._app = app
        self._runner: Any = None
        self._listens = False  # for an abort_signal, as the runner of 2.13 does
        self._memory: Any = None
        self._credentials: Any = None
        self._before = before if isinstance(before, AdkApplication) else None
        if self._before is not None:
            self._memory = self._before._memory
            self._credentials = self._before._credentials

    async def run(self, request: RunInput, host: Host) -> AsyncIterator[RunEvent]:
        """Run the agent, and yield the JSON of each event that the runner yields."""
        await import_sdk(self._app, *_SDK)
        from google.genai import types

        run = enter(host)
        message = request.message
        runner = await self._opened()
        events = runner.run_async(
            user_id=request.user,
            session_id=request.session,
            new_message=None if message is None else types.Content.model_validate(message),
            invocation_id=request.invocation_id,
            state_delta=request.state_delta,
            run_config=_config(request),
            **({"abort_signal": host.aborted} if self._listens else {}),
        )
        async with aclosing(events):
            async for event in events:
                yield run.to_send(event)

    def parse(self, event: bytes) -> Any:
        """Return ADK's event."""
        from google.adk.events import Event

        return Event.model_validate_json(event)

    async def add_session_to_memory(self, session: SessionRecord) -> None:
        """Let the agents find the session's events when they search their memory."""
        await import_sdk(self._app, *_SDK)
        from agentdouble.agents.adk.services import to_adk

        await self._remembering().add_session_to_memory(to_adk(session))

    def reset(self) -> None:
        """Empty the memory and forget the credentials: the next run has new ones."""
        self._memory = self._credentials = None

    async def close(self) -> None:
        """Close the runner, with the toolsets of its agents and its plugins."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.close()

    async def _opened(self) -> Any:
        before, self._before = self._before, None
        if before is not None:
            await before.close()
        runner = self._runner
        if runner is None:
            from agentdouble.agents.adk.services import Artifacts, Sessions

            runner = self._runner = runner_of(
                self._native, self._app, session_service=Sessions(), artifact_service=Artifacts()
            )
            self._listens = "abort_signal" in inspect.signature(runner.run_async).parameters
        runner.memory_service = self._remembering()
        runner.credential_service = self._holding_credentials()
        return runner

    def _remembering(self) -> Any:
        from google.adk.memory import InMemoryMemoryService

        if self._memory is None:
            self._memory = InMemoryMemoryService()
        return self._memory

    def _holding_credentials(self) -> Any:
        from google.adk.auth.credential_service import in_memory_credential_service as in_memory

        if self._credentials is None:
            self._credentials = in_memory.InMemoryCredentialService()
        return self._credentials


def _config(request: RunInput) -> Any:
    from google.adk.agents.run_config import RunConfig, StreamingMode

    fields = {"custom_metadata": request.custom_metadata, "service_tier": request.service_tier}
    return RunConfig(
        streaming_mode=StreamingMode.SSE if request.streaming else StreamingMode.NONE,
        # An older version refuses the names of fields that it does not have.
        **{name: value for name, value in fields.items() if name in RunConfig.model_fields},
    )


_CONVERSATION_SDK = (
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
    await import_sdk(app, *_CONVERSATION_SDK)
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
