"""What a platform answers, as frozen values that show themselves."""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from doublecheck.notebook_repr import Shown, clock_time, counted, short, without_token
from doublecheck.secret import Secret


@dataclass(frozen=True, repr=False)
class Output(Shown, drawn_by="notebook.display.outputs.output"):
    """One output of an execution, with the nine fields of section 2.7."""

    output_type: str
    name: str | None = None
    text: str | None = None
    data: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    execution_count: int | None = None
    ename: str | None = None
    evalue: str | None = None
    traceback: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        shown = [one for one in (self.output_type, self.name, self.ename) if one]
        shown += [short(one) for one in (self.text, self.evalue) if one is not None]
        return f"<Output {' '.join([*shown, ', '.join(self.data or ())]).strip()}>"


@dataclass(frozen=True)
class BrowserInfo(Shown, drawn_by="notebook.display.sandbox.browser_info"):
    """What a session's browser is; ``width`` and ``height`` are those of its pages, in pixels.

    ``cdp_url`` is where its DevTools protocol is spoken; whoever knows it may drive it.
    """

    user_agent: str
    cdp_url: Secret
    width: int
    height: int


@dataclass(frozen=True, repr=False)
class McpTool(Shown, drawn_by="notebook.display.mcp.tool"):
    """A tool of an MCP server, with the JSON Schemas of what it takes and returns."""

    name: str
    description: str
    input_schema: Mapping[str, Any] = field(repr=False)
    output_schema: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def signature(self) -> str:
        """Its name with its arguments; those that are optional have a question mark."""
        required = self.input_schema.get("required") or ()
        properties = self.input_schema.get("properties") or {}
        names = [name if name in required else f"{name}?" for name in properties]
        return f"{self.name}({', '.join(names)})"

    def __repr__(self) -> str:
        return f"<McpTool {self.signature}>"


@dataclass(frozen=True, repr=False)
class McpResult(Shown, drawn_by="notebook.display.mcp.result"):
    """What calling a tool came to; ``content`` are the blocks as they were sent (MCP-05)."""

    is_error: bool
    structured: Mapping[str, Any] | None
    content: tuple[Mapping[str, Any], ...]

    @property
    def text(self) -> str:
        """The text of its blocks, one below the other."""
        return "\n".join(block["text"] for block in self.content if block.get("type") == "text")

    def __repr__(self) -> str:
        kinds = [str(block.get("type")) for block in self.content]
        others = [kind for kind in kinds if kind != "text"]
        shown = ["error"] * self.is_error + [short(self.text)] * (others != kinds) + others
        return f"<McpResult {' '.join(shown)}>"


@dataclass(frozen=True, repr=False)
class A2aAnswer(Shown, drawn_by="notebook.display.a2a.answer"):
    """What an A2A application said: a task, a message, or an event of a stream.

    ``kind`` is ``task``, ``message``, ``status-update`` or ``artifact-update``; ``state`` is that
    of the task, as version 0.3 calls it (``input-required``). ``raw`` is all of it, as it came.
    """

    kind: str
    task_id: str | None
    context_id: str | None
    state: str | None
    texts: tuple[str, ...]
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def text(self) -> str:
        """Its texts, one below the other."""
        return "\n".join(self.texts)

    def __repr__(self) -> str:
        shown = [self.kind, self.state, short(self.text) if self.texts else None]
        return f"<A2aAnswer {' '.join(one for one in shown if one)}>"


@dataclass(frozen=True)
class CodeError(Shown, drawn_by="notebook.display.outputs.error"):
    """The error that ended an execution; ``traceback`` may hold ANSI colours."""

    ename: str
    evalue: str
    traceback: str = field(repr=False)


@dataclass(frozen=True, repr=False)
class CodeResult(Shown, drawn_by="notebook.display.sandbox.code_bundle"):
    """What running code came to; ``session_id`` is the instance's SessionId (``s-...``)."""

    success: bool
    status: str
    message: str
    outputs: tuple[Output, ...]
    execution_count: int | None
    session_id: str
    code: str

    @property
    def stdout(self) -> str:
        """What the code wrote to its standard output."""
        return self._stream("stdout")

    @property
    def stderr(self) -> str:
        """What the code wrote to its standard error."""
        return self._stream("stderr")

    @property
    def text(self) -> str | None:
        """The text of the last value that the code returned or displayed."""
        texts = [output.data.get("text/plain") for output in self.outputs if output.data]
        return texts[-1] if texts else None

    @property
    def error(self) -> CodeError | None:
        """The error that ended the execution, if one did."""
        for output in reversed(self.outputs):
            if output.output_type == "error":
                traceback = "\n".join(output.traceback or ())
                return CodeError(output.ename or "", output.evalue or "", traceback)
        return None

    @property
    def images(self) -> tuple[bytes, ...]:
        """The images that the code displayed, as the bytes of their files."""
        return tuple(image for output in self.outputs for _, image in images_of(output))

    def _stream(self, name: str) -> str:
        return "".join(output.text or "" for output in self.outputs if output.name == name)

    def __repr__(self) -> str:
        shown = [self.status, f"[{self.execution_count}]"]
        if self.stdout:
            shown.append(f"stdout={short(self.stdout)}")
        if self.text is not None:
            shown.append(f"text={short(self.text)}")
        if self.images:
            shown.append(f"images={len(self.images)}")
        if self.error is not None:
            shown.append(f"error={short(f'{self.error.ename}: {self.error.evalue}')}")
        return f"<CodeResult {' '.join(shown)}>"


@dataclass(frozen=True, repr=False)
class BashResult(Shown, drawn_by="notebook.display.sandbox.bash_result"):
    """What a command came to; ``exit_code`` is None while it runs on after its timeout.

    ``session_id`` is the instance's SessionId (``s-...``).
    """

    status: str
    exit_code: int | None
    stdout: str
    stderr: str
    session_id: str
    command: str

    @property
    def outputs(self) -> tuple[Output, ...]:
        """What it wrote, as outputs of code: each stream in one."""
        written = (("stdout", self.stdout), ("stderr", self.stderr))
        return tuple(Output("stream", name=name, text=text) for name, text in written if text)

    def __repr__(self) -> str:
        shown = [self.status if self.exit_code is None else f"exit {self.exit_code}"]
        shown += [f"stdout={short(self.stdout)}"] * bool(self.stdout)
        shown += [f"stderr={short(self.stderr)}"] * bool(self.stderr)
        return f"<BashResult {' '.join(shown)}>"


@dataclass(frozen=True, repr=False)
class StreamEvent(Shown, drawn_by="notebook.display.events.stream_event"):
    """One event of a streaming invocation."""

    data: str

    @property
    def error(self) -> str | None:
        """The message, if this event tells of a failure (INV-06)."""
        try:
            document = json.loads(self.data)
        except (ValueError, RecursionError):
            return None
        error = document.get("error") if isinstance(document, dict) else None
        return error if isinstance(error, str) else None

    def __str__(self) -> str:
        return self.data

    def __repr__(self) -> str:
        return f"<StreamEvent {short(self.data)}>"


@dataclass(frozen=True, repr=False)
class Session(Shown, drawn_by="notebook.display.sessions.session"):
    """A living session instance of a double; ``remaining_s`` is in seconds of its clock."""

    session_id: str
    user_session_id: str
    tool_id: str
    created_at: dt.datetime
    deadline: dt.datetime
    remaining_s: float
    executions: int
    pids: tuple[int, ...]

    def __repr__(self) -> str:
        left = f"{clock_time(self.remaining_s)} left"
        return f"<Session {self.user_session_id} {left}, {counted(self.executions, 'execution')}>"


@dataclass(frozen=True, repr=False)
class AgentEvent(Shown, drawn_by="notebook.display.events.event"):
    """An event of an agent; ``raw`` is all of it, as it came.

    ``parts`` are as on the wire. What a platform does not say is None; ``timestamp`` is in Unix
    seconds. ``error`` is the message, if the event tells of a failure.
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
        """The texts of its parts, joined."""
        return "".join(part.get("text") or "" for part in self.parts)

    @property
    def function_calls(self) -> tuple[Mapping[str, Any], ...]:
        """The tool calls among its parts."""
        return self._of_parts("functionCall")

    @property
    def function_responses(self) -> tuple[Mapping[str, Any], ...]:
        """The answers of tools among its parts."""
        return self._of_parts("functionResponse")

    def _of_parts(self, kind: str) -> tuple[Mapping[str, Any], ...]:
        """Return what parts have of a kind; null stands for nothing."""
        return tuple(part[kind] for part in self.parts if part.get(kind) is not None)

    def __repr__(self) -> str:
        shown = [self.author or self.role or "?"]
        if self.partial:
            shown.append("partial")
        if self.text:
            shown.append(short(self.text))
        shown += [f"calls {call.get('name')}" for call in self.function_calls]
        shown += [f"answers {one.get('name')}" for one in self.function_responses]
        if self.error is not None:
            shown.append(f"error={short(self.error)}")
        return f"<AgentEvent {' '.join(shown)}>"


@dataclass(frozen=True, repr=False)
class AgentSession(Shown, drawn_by="notebook.display.sessions.agent_session"):
    """A session of API-server mode; ``events`` is its history, where it was asked for.

    ``last_update_time`` is in Unix seconds, None where a platform does not say it.
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


@dataclass(frozen=True, repr=False)
class JournalEntry(Shown, drawn_by="notebook.display.journal.entry"):
    """A request that a double served; ``curl`` is a command that asks the same.

    ``unread`` names the fields of the request that nothing acted on, ``faults`` those armed ones
    that happened to it.
    """

    id: int
    at: dt.datetime
    method: str
    url: str
    status: int | None
    duration_ms: float | None
    unknowns: tuple[str, ...]
    unread: tuple[str, ...]
    curl: str = field(repr=False)
    request_headers: Mapping[str, str] = field(repr=False)
    request_body: str = field(repr=False)
    response_headers: Mapping[str, str] = field(repr=False)
    response_body: str = field(repr=False)
    faults: tuple[str, ...] = ()

    def __repr__(self) -> str:
        status = "no answer" if self.status is None else self.status
        took = "" if self.duration_ms is None else f" {self.duration_ms:.0f} ms"
        relied = f", {counted(len(self.unknowns), 'unknown')}" if self.unknowns else ""
        met = "".join(f", {one}" for one in self.faults)
        return f"<JournalEntry {self.id} {self.method} {without_token(self.url)} {status}{took}{relied}{met}>"


@dataclass(frozen=True, repr=False)
class ArmedFault(Shown, drawn_by="notebook.display.faults.fault"):
    """A fault of a double; ``described`` says it in one line.

    ``calls`` asked for its operation since it was armed, ``met`` of them were its to meet, and
    ``fired`` times it did happen.
    """

    id: str
    kind: str
    operation: str
    described: str
    calls: int
    met: int
    fired: int

    def __repr__(self) -> str:
        return f"<ArmedFault {self.id} {self.described}: fired {self.fired} of {self.met}>"


def images_of(output: Output) -> tuple[tuple[str, bytes], ...]:
    """Return the images of an output: MIME type and bytes; what is no image is left out."""
    found = []
    for mime_type, content in (output.data or {}).items():
        if mime_type == "image/svg+xml":
            found.append((mime_type, str(content).encode()))
        elif mime_type.startswith("image/"):
            with contextlib.suppress(ValueError):  # binascii.Error is one, too
                found.append((mime_type, base64.b64decode(_unbroken(content), validate=True)))
    return tuple(found)


def _unbroken(content: Any) -> str:
    """Return base64 in one piece: there may be line ends in it, or a list of its lines."""
    lines = content if isinstance(content, (list, tuple)) else [content]
    return "".join("".join(map(str, lines)).split())
