"""The interface between a server and a framework that has its own runner.

Agents that are functions yield values, which the server turns into events. A framework's runner
makes the events itself and keeps them in its own session service, so it has a ``FrameworkHost``
instead: the server's sessions and artifacts, for the services of the framework.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol


def is_instance_of(value: object, module: str, name: str) -> bool:
    """Return whether a value is an instance of a framework's class, without importing it."""
    return any((cls.__module__, cls.__qualname__) == (module, name) for cls in type(value).__mro__)


class RunEvent(NamedTuple):
    """An event for the client; ``artifacts`` says whether it has any."""

    json: bytes
    artifacts: bool


@dataclass(frozen=True)
class RunInput:
    """A client's request for a run, unchecked: the framework reports what is wrong."""

    user: str
    session: str
    message: Mapping[str, Any] | None
    streaming: bool = False
    invocation_id: str | None = None
    state_delta: Mapping[str, Any] | None = None
    custom_metadata: Mapping[str, Any] | None = None
    service_tier: str | None = None


@dataclass(frozen=True)
class FrameworkEvent:
    """An event to store: the framework's object (``value``), and the data for the store.

    ``json`` is the event for clients, and ``private`` for the framework, or empty if both are
    equal.
    """

    value: Any
    id: str
    timestamp: float
    json: bytes
    state_delta: Mapping[str, Any] = field(default_factory=dict)
    private: bytes = b""


@dataclass(frozen=True)
class SessionRecord:
    """A session with its events as the framework's objects; the state is the caller's own copy."""

    app: str
    user: str
    id: str
    state: dict[str, Any]
    last_update: float
    events: Sequence[Any] = ()


class FrameworkHost(Protocol):
    """The sessions and artifacts of a server, on the loop of the agent that runs.

    After the run every method raises RunEndedError.
    """

    aborted: asyncio.Event  # set when the client disconnects, before the run is cancelled

    def now(self) -> float:
        """Return the platform's time in Unix seconds."""

    def append(self, app: str, user: str, session: str, event: FrameworkEvent) -> None:
        """Store an event before the next yield or query; a deleted session ends the run."""

    async def session(self, app: str, user: str, session: str) -> SessionRecord | None:
        """Return a session with its events, or None."""

    async def sessions(self, app: str, user: str | None) -> Sequence[SessionRecord]:
        """Return the sessions of a user or of all users, without their events."""

    async def create(
        self, app: str, user: str, session: str | None, state: Mapping[str, Any]
    ) -> SessionRecord:
        """Create a session; raise ApiError if it exists."""

    async def delete(self, app: str, user: str, session: str) -> None:
        """Delete a session, if it exists."""

    def artifacts(self, app: str, user: str, session: str | None) -> HostArtifacts:
        """Return a session's artifacts, or the user's own if ``session`` is None."""


class HostArtifacts(Protocol):
    """The artifacts of a session; a part is its JSON, a version is described as for clients."""

    async def save(
        self, name: str, part: Mapping[str, Any], custom_metadata: Mapping[str, Any] | None
    ) -> int:
        """Store a new version and return its number."""

    async def load(self, name: str, version: int | None) -> bytes | None:
        """Return a version, by default the newest, or None if there is none."""

    async def names(self) -> Sequence[str]:
        """Return the names, sorted."""

    async def versions(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Describe every version, oldest first."""

    async def delete(self, name: str) -> None:
        """Delete every version."""


class Framework(Protocol):
    """The framework's side of one application on one server."""

    def run(self, request: RunInput, host: FrameworkHost) -> AsyncIterator[RunEvent]:
        """Run the agent on the application's loop, and yield what the client gets."""

    def parse(self, event: bytes) -> Any:
        """Return the framework's object of a stored event."""

    async def add_session_to_memory(self, session: SessionRecord) -> None:
        """Let the agents find the session's events when they search their memory."""

    def reset(self) -> None:
        """Clear the state outside of sessions and artifacts: memory, credentials."""

    async def close(self) -> None:
        """Release the agents' resources; call it on the application's loop."""
