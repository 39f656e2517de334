"""The session as an agent sees it during a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Protocol

from agentdouble.agents.events import Event, Part


class Backend(Protocol):
    """What stands behind a session; each call sees what was yielded before it."""

    async def history(self) -> tuple[Event, ...]:
        """Return the session's events, oldest first."""

    async def save_artifact(self, name: str, part: Part) -> int:
        """Keep a new version of an artifact and return its number, from 0."""

    async def load_artifact(self, name: str, version: int | None) -> Part | None:
        """Return a version of an artifact, the newest for None, or None if there is none."""

    async def artifacts(self) -> tuple[str, ...]:
        """Return the names of the session's artifacts, sorted."""


class State(MutableMapping[str, Any]):
    """A session's state. What is set is stored with the next event that is not partial.

    ``app:`` and ``user:`` before a key share it, ``temp:`` keeps it for this run only. A
    change inside a value is not noticed: set the key again.
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
        """Return what was set since it was last taken."""
        delta, self._delta = self._delta, {}
        return delta


class Session:
    """The session of a run: its user, its state, its history, its artifacts.

    ``streaming`` says whether increments are wanted.
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
        """Return the session's events so far, this turn's message included (API-17)."""
        return await self._backend.history()

    async def save_artifact(
        self, name: str, content: bytes | str | Part, mime_type: str = "application/octet-stream"
    ) -> int:
        """Keep a new version of an artifact and return its number, from 0.

        A name that begins with ``user:`` is shared over the user's sessions.
        """
        version = await self._backend.save_artifact(name, _part(content, mime_type))
        self._saved[name] = version
        return version

    async def load_artifact(self, name: str, version: int | None = None) -> Part | None:
        """Return a version of an artifact, the newest unless it is given, or None."""
        return await self._backend.load_artifact(name, version)

    async def artifacts(self) -> tuple[str, ...]:
        """Return the names of the session's artifacts, sorted."""
        return await self._backend.artifacts()

    def take_saved(self) -> dict[str, int]:
        """Return the artifacts that were saved since they were last taken."""
        saved, self._saved = self._saved, {}
        return saved


def _part(content: bytes | str | Part, mime_type: str) -> Part:
    if isinstance(content, Part):
        return content
    if isinstance(content, str):
        return Part.of_text(content)
    return Part.of_data(content, mime_type)
