"""The answers of agents and tools: events, sessions, MCP tools, A2A tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from doublecheck.core.notebook_repr import Series, Shown, counted, short
from doublecheck.errors import ResultError
from doublecheck.values.executions import CanFail

_FAILED = ("failed", "rejected")


@dataclass(frozen=True, repr=False)
class StreamEvent(Shown, CanFail, drawn_by="notebook.display.agents.stream_event"):
    """One event of a streaming invocation. ``raise_for_error()`` raises a failure (INV-06)."""

    data: str

    @property
    def error(self) -> str | None:
        """The error message, if this event reports a failure (INV-06)."""
        try:
            document = json.loads(self.data)
        except (ValueError, RecursionError):
            return None
        error = document.get("error") if isinstance(document, dict) else None
        return error if isinstance(error, str) else None

    def json(self) -> Any:
        """Return what the application yielded. Raise ValueError if ``data`` is not JSON."""
        try:
            return json.loads(self.data)
        except json.JSONDecodeError as error:
            message = f"This event is a text, which data has ({error.msg})"
            raise json.JSONDecodeError(message, error.doc, error.pos) from None

    def failure(self) -> ResultError | None:
        if self.error is None:
            return None
        return ResultError("The application failed:", result=self, evalue=self.error)

    def __str__(self) -> str:
        return self.data

    def __repr__(self) -> str:
        return f"<StreamEvent {short(self.data)}>"


@dataclass(frozen=True, repr=False)
class AgentEvent(Shown, CanFail, drawn_by="notebook.display.agents.event"):
    """An event of an agent; ``raw`` is the unchanged JSON.

    ``parts`` have the form of the JSON. A field that the platform omits is None; ``timestamp`` is
    in Unix seconds. ``error`` is the message, if the event reports a failure, which
    ``raise_for_error()`` raises.
    """

    role: str | None
    parts: tuple[Mapping[str, Any], ...]
    author: str | None = None
    partial: bool = False
    error: str | None = None
    id: str | None = None
    invocation_id: str | None = None
    timestamp: float | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def text(self) -> str:
        """The joined texts of the parts."""
        return "".join(part.get("text") or "" for part in self.parts)

    @property
    def function_calls(self) -> tuple[Mapping[str, Any], ...]:
        """The tool calls among its parts."""
        return self._of_parts("functionCall", "function_call")

    @property
    def function_responses(self) -> tuple[Mapping[str, Any], ...]:
        """The answers of tools among its parts."""
        return self._of_parts("functionResponse", "function_response")

    def failure(self) -> ResultError | None:
        if self.error is None:
            return None
        ename = str(self.raw.get("errorCode") or "")
        return ResultError("The agent failed:", result=self, ename=ename, evalue=self.error)

    def _of_parts(self, *names: str) -> tuple[Mapping[str, Any], ...]:
        """Return the values of a field in parts, under any of its names, without null."""
        values = (part.get(name) for part in self.parts for name in names)
        return tuple(value for value in values if value is not None)

    def __repr__(self) -> str:
        parts = [self.author or self.role or "?"]
        if self.partial:
            parts.append("partial")
        if self.text:
            parts.append(short(self.text))
        parts += [f"calls {call.get('name')}" for call in self.function_calls]
        parts += [f"answers {answer.get('name')}" for answer in self.function_responses]
        if self.error is not None:
            parts.append(f"error={short(self.error)}")
        return f"<AgentEvent {' '.join(parts)}>"


class AgentEvents(
    Series[AgentEvent], CanFail, noun="event", drawn_by="notebook.display.agents.events"
):
    """The messages and actions of users and agents, in order.

    ``raise_for_error()`` raises ResultError if one of them reports a failure.
    """

    __slots__ = ()

    def failure(self) -> ResultError | None:
        failures = (event.failure() for event in self)
        return next((error for error in failures if error is not None), None)


@dataclass(frozen=True, repr=False)
class AgentSession(Shown, drawn_by="notebook.display.agents.session"):
    """A session of API-server mode. ``events`` is its history, if requested.

    ``app_name`` and ``user_id`` are the requested ones, and later calls with this session request
    them again. ``last_update_time`` is in Unix seconds, None if the platform omits it.
    """

    id: str
    app_name: str
    user_id: str
    state: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[AgentEvent, ...] = ()
    last_update_time: float | None = None

    def __repr__(self) -> str:
        where = f"{self.app_name}/{self.user_id}/{self.id}"
        state = repr(dict(self.state))
        state = state if len(state) <= 60 else counted(len(self.state), "key")
        return f"<AgentSession {where} events={len(self.events)} state={state}>"


class AgentSessions(
    Series[AgentSession], noun="session", drawn_by="notebook.display.agents.sessions"
):
    """The sessions of a user, in API-server mode."""

    __slots__ = ()


@dataclass(frozen=True, repr=False)
class McpTool(Shown, drawn_by="notebook.display.agents.tool"):
    """A tool of an MCP server, with the JSON Schemas of its arguments and result."""

    name: str
    description: str
    input_schema: Mapping[str, Any] = field(repr=False)
    output_schema: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def signature(self) -> str:
        """The name with its arguments. Optional ones have a question mark."""
        required = self.input_schema.get("required") or ()
        properties = self.input_schema.get("properties") or {}
        names = [name if name in required else f"{name}?" for name in properties]
        return f"{self.name}({', '.join(names)})"

    def __repr__(self) -> str:
        return f"<McpTool {self.signature}>"


class McpTools(Series[McpTool], noun="tool", drawn_by="notebook.display.agents.tools"):
    """The tools of an MCP server."""

    __slots__ = ()


@dataclass(frozen=True, repr=False)
class McpResult(Shown, CanFail, drawn_by="notebook.display.agents.tool_result"):
    """The result of a tool call. ``content`` holds the blocks as sent (MCP-05).

    ``raise_for_error()`` raises ResultError if ``is_error`` is set.
    """

    is_error: bool
    structured: Mapping[str, Any] | None
    content: tuple[Mapping[str, Any], ...]

    @property
    def text(self) -> str:
        """The texts of the blocks, joined by line ends."""
        return "\n".join(block["text"] for block in self.content if block.get("type") == "text")

    def failure(self) -> ResultError | None:
        if not self.is_error:
            return None
        return ResultError("The tool failed:", result=self, evalue=self.text)

    def __repr__(self) -> str:
        kinds = [str(block.get("type")) for block in self.content]
        others = [kind for kind in kinds if kind != "text"]
        parts = ["error"] * self.is_error + [short(self.text)] * (others != kinds) + others
        return f"<McpResult {' '.join(parts)}>"


@dataclass(frozen=True, repr=False)
class A2aAnswer(Shown, CanFail, drawn_by="notebook.display.agents.answer"):
    """An answer of an A2A application: a task, a message, or an event of a stream.

    ``kind`` is ``task``, ``message``, ``status-update`` or ``artifact-update``; ``state`` is the
    task's, with its name in version 0.3 (``input-required``). ``raw`` is the whole answer,
    unchanged. ``raise_for_error()`` raises ResultError for a task that failed or was rejected.
    """

    kind: str
    task_id: str | None
    context_id: str | None
    state: str | None
    texts: tuple[str, ...]
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def text(self) -> str:
        """The texts, joined by line ends."""
        return "\n".join(self.texts)

    def failure(self) -> ResultError | None:
        if self.state not in _FAILED:
            return None
        return ResultError("The task ended:", result=self, ename=self.state, evalue=self.text)

    def __repr__(self) -> str:
        parts = [self.kind, self.state, short(self.text) if self.texts else None]
        return f"<A2aAnswer {' '.join(part for part in parts if part)}>"
