"""The session of an agent during a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Protocol

from agentdouble.agents.events import Event, Part


class Backend(Protocol):
    """The storage of a session; each call sees the events that were yielded before it."""

    async def history(self) -> tuple[Event, ...]:
        """Return the session's events, oldest first."""

    async def save_artifact(self, name: str, part: Part) -> int:
        """Store a new version of an artifact and return its number, counted from 0."""

    async def load_artifact(self, name: str, version: int | None) -> Part | None:
        """Return a version of an artifact, the newest by default, or None if there is none."""

    async def artifacts(self) -> tuple[str, ...]:
        """Return the names of the session's artifacts, sorted."""


class State(MutableMapping[str, Any]):
    """A session's state; changes are stored with the next event that is not partial.

    A key with the prefix ``app:`` or ``user:`` is shared, a key with ``temp:`` exists only in this
    run. A change inside a value is not noticed: set the key again.
    """

    def __init__(self, initial: Mapping[str, Any]) -> None:
        self._values = dict(initial)
        self._delta: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._values[key] = self._delta[key] = value

    def __delitem__(self, key: str) -> None:
        raise TypeError(f"State keeps every key: set state[{key!r}] to None instead.")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def update_from(self, delta: Mapping[str, Any]) -> None:
        """Apply the state delta of an event."""
        self._values.update(delta)

    def take_delta(self) -> dict[str, Any]:
        """Return the values that were set since the last call."""
        delta, self._delta = self._delta, {}
        return delta


class Session:
    """The session of a run: its user, state, history and artifacts.

    ``streaming`` says whether the client wants increments.
    """

    def __init__(
        self,
        *,
        app_name: str,
        user_id: str,
        id: str,  # noqa: A002 (the specification's name)
        invocation_id: str,
        state: Mapping[str, Any],
        streaming: bool,
        backend: Backend,
    ) -> None:
        self.app_name = app_name
        self.user_id = user_id
        self.id = id
        self.invocation_id = invocation_id
        self.state = State(state)
        self.streaming = streaming
        self._backend = backend
        self._saved: dict[str, int] = {}

    async def history(self) -> tuple[Event, ...]:
        """Return the session's events so far, including the message of this turn (API-17)."""
        return await self._backend.history()

    async def save_artifact(
        self, name: str, content: bytes | str | Part, mime_type: str = "application/octet-stream"
    ) -> int:
        """Store a new version of an artifact and return its number, counted from 0.

        An artifact whose name begins with ``user:`` is shared by the user's sessions.
        """
        version = await self._backend.save_artifact(name, _part(content, mime_type))
        self._saved[name] = version
        return version

    async def load_artifact(self, name: str, version: int | None = None) -> Part | None:
        """Return a version of an artifact, the newest by default, or None if there is none."""
        return await self._backend.load_artifact(name, version)

    async def artifacts(self) -> tuple[str, ...]:
        """Return the names of the session's artifacts, sorted."""
        return await self._backend.artifacts()

    def take_saved(self) -> dict[str, int]:
        """Return the artifacts that were saved since the last call, with their versions."""
        saved, self._saved = self._saved, {}
        return saved


def _part(content: bytes | str | Part, mime_type: str) -> Part:
    if isinstance(content, Part):
        return content
    if isinstance(content, str):
        return Part.of_text(content)
    return Part.of_data(content, mime_type)
