"""Agents: a name and a function that answers messages in a session with events (sections 2.2, 2.4)."""

from __future__ import annotations

import base64
import inspect
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Union

from agentdouble.agents.framework import Framework
from agentdouble.errors import AgentLoadError

MODEL = "model"

Adapter = Callable[[object, str], "Agent | None"]


@dataclass(frozen=True)
class Part:
    """A part of a message or an event; ``wire`` is its JSON-ready form."""

    wire: Mapping[str, Any]

    @classmethod
    def of_text(cls, text: str) -> Part:
        """Return a part with a text."""
        return cls({"text": text})

    @classmethod
    def of_data(cls, data: bytes, mime_type: str) -> Part:
        """Return a part with bytes, for instance an image."""
        encoded = base64.urlsafe_b64encode(data).decode()
        return cls({"inlineData": {"data": encoded, "mimeType": mime_type}})

    @classmethod
    def of_call(cls, name: str, arguments: Mapping[str, Any], id_: str | None = None) -> Part:
        """Return a part with a tool call; the id is generated unless it is given."""
        call = {"id": id_ or f"call-{uuid.uuid4()}", "args": dict(arguments), "name": name}
        return cls({"functionCall": call})

    @classmethod
    def of_response(cls, call: Part, response: Mapping[str, Any]) -> Part:
        """Return a part with the tool's answer to a call."""
        called = call.function_call or {}
        answer = {"id": called.get("id"), "name": called.get("name"), "response": dict(response)}
        return cls({"functionResponse": answer})

    @property
    def text(self) -> str | None:
        """The text, or None for a part without text."""
        return self.wire.get("text")

    @property
    def function_call(self) -> Mapping[str, Any] | None:
        """The tool call with ``id``, ``name`` and ``args``, or None."""
        return self.wire.get("functionCall")

    @property
    def function_response(self) -> Mapping[str, Any] | None:
        """The tool's answer with ``id``, ``name`` and ``response``, or None."""
        return self.wire.get("functionResponse")

    @property
    def data(self) -> bytes | None:
        """The bytes, or None for a part without bytes."""
        inline = self.wire.get("inlineData")
        if inline is None:
            return None
        encoded = inline.get("data", "").replace("+", "-").replace("/", "_")
        return base64.urlsafe_b64decode(encoded)

    @property
    def mime_type(self) -> str | None:
        """The MIME type of the bytes, or None."""
        mime_type: str | None = self.wire.get("inlineData", {}).get("mimeType")
        return mime_type


@dataclass(frozen=True)
class Message:
    """A user's message in one turn."""

    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The joined texts of the parts."""
        return _text(self.parts)


@dataclass(frozen=True)
class Event:
    """An event of an agent: content or an action.

    A ``partial`` event is an increment, which is sent but never stored. ``more`` contains further
    fields of the event's JSON, such as ``errorCode`` or ``usageMetadata``.
    """

    parts: tuple[Part, ...] = ()
    role: str = MODEL
    partial: bool | None = None
    author: str | None = None
    state_delta: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The joined texts of the parts."""
        return _text(self.parts)

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Event:
        """Return an Event for the JSON of an event."""
        content = wire.get("content") or {}
        fields = {"content", "partial", "author", "actions"}
        return cls(
            parts=tuple(Part(part) for part in content.get("parts") or ()),
            role=content.get("role") or MODEL,
            partial=wire.get("partial"),
            author=wire.get("author"),
            state_delta=(wire.get("actions") or {}).get("stateDelta") or {},
            more={key: value for key, value in wire.items() if key not in fields},
        )


@dataclass(frozen=True)
class WireEvent:
    """An event of another framework, in that framework's JSON."""

    wire: Mapping[str, Any]


def _text(parts: tuple[Part, ...]) -> str:
    return "".join(part.text or "" for part in parts)


class RunBackend(Protocol):
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
        raise TypeError(f"State cannot delete keys: set state[{key!r}] to None instead.")

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
        backend: RunBackend,
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


AgentOutput = Union[str, Part, Event, WireEvent]  # noqa: UP007 (evaluated, also on Python 3.10)


class Run(Protocol):
    """An async generator function that yields the texts, parts or events of one turn."""

    def __call__(self, message: Message, session: Session, /) -> AsyncIterator[AgentOutput]:
        """Answer a message."""


@dataclass(frozen=True)
class Agent:
    """An agent; ``name`` is the author of its events."""

    name: str
    run: Run
    description: str = ""
    native: Any = None  # the framework's own object, if there is one
    # For a framework with its own runner: creates the framework's side of the application, given
    # the one before a reload, or None. Without it, ``run`` answers.
    open: Callable[[Framework | None], Framework] | None = None


def as_agent(root: object, app: str, adapters: Sequence[Adapter] = ()) -> Agent:
    """Return an application's ``root_agent`` as an Agent; raise AgentLoadError.

    It is an async generator function, or an object that one of the adapters converts.
    """
    for adapter in adapters:
        agent = adapter(root, app)
        if agent is not None:
            return agent
    if isinstance(root, Agent):
        return root
    _check(root, app)
    return Agent(app, root, inspect.getdoc(root) or "")  # type: ignore[arg-type]


def _check(root: object, app: str) -> None:
    if not inspect.isasyncgenfunction(root):
        kind = getattr(root, "__qualname__", type(root).__qualname__)
        raise AgentLoadError(
            f"The root_agent of {app!r} is {kind}, not an agent. An agent is an async generator "
            "function (message, session), a SimpleApp, or an agent of Google's ADK.",
            app=app,
        )
    try:
        inspect.signature(root).bind(object(), object())
    except TypeError as error:
        raise AgentLoadError(
            f"The root_agent of {app!r} does not accept (message, session): {error}.", app=app
        ) from None
