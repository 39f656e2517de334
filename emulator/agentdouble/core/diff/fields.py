"""Which fields of an answer are compared, and which differ in every answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from agentdouble.core.diff.pairs import CALL, TIME, is_time
from agentdouble.core.diff.patterns import ACTIONS, is_operation, is_path

Kind = Literal["id", "time", "prose", "json", "traceback", "content"]

_INDEX = re.compile(r"\[\d+\]")
_INVOKE = ("InvokeTool*",)
_PROBES = ("GET */ping", "GET */health", "GET */readiness", "GET */liveness")
_SESSIONS = ("* */sessions", "* */sessions/{session}")
_RUNS = ("POST */run", "POST */run_sse")
_TURNS = (*_SESSIONS, *_RUNS)
_ARTIFACTS = ("* */artifacts*",)
_MCP = ("/mcp*",)
_A2A = (
    *("* SendMessage", "* SendStreamingMessage", "* GetTask", "* CancelTask", "* ListTasks"),
    *("* SubscribeToTask", "* message/*", "* tasks/*", "* */message:*", "* */tasks*"),
)
_OUTPUT = "$.Result.Result.data.outputs[*]"


@dataclass(frozen=True)
class DeclaredField:
    """A field of the answers to some operations.

    An ``id`` is compared by its meaning, ``prose`` without the ids and times in it, ``json`` by its
    structure. A ``time`` and a ``traceback`` must only be present. ``content`` is compared
    unchanged, whatever follows in the list.
    """

    kind: Kind
    operations: tuple[str, ...]
    paths: tuple[str, ...]
    noun: str = "id"


def _of_events(*names: str) -> tuple[str, ...]:
    return tuple(
        f"{event}.{name}" for event in ("$[*]", "events[*]$", "$.events[*]") for name in names
    )


def _of_tasks(*names: str) -> tuple[str, ...]:
    return tuple(f"{document}.{name}" for document in ("$", "events[*]$") for name in names)


FIELDS = (
    # the sandbox; printed text is content, and a traceback's lines name the platform's files
    DeclaredField("content", _INVOKE, (f"{_OUTPUT}.data**", f"{_OUTPUT}.text")),
    DeclaredField("json", _INVOKE, ("$.Result.Result",)),
    DeclaredField(
        "id", _INVOKE, ("$.Result.SessionId", "$.Result.Result.data.session_id"), "session"
    ),
    DeclaredField("id", _INVOKE, ("$.Result.Result.data.msg_id",), "message"),
    DeclaredField("id", _INVOKE, ("$.Result.Result.data.command_id",), "command"),
    DeclaredField("traceback", _INVOKE, (f"{_OUTPUT}.traceback",)),
    # the control plane
    DeclaredField("id", (ACTIONS,), ("$.ResponseMetadata.RequestId",), "request"),
    DeclaredField("id", (ACTIONS,), ("$.Result.ToolId", "$.Result.**.ToolId"), "tool"),
    DeclaredField(
        "id", (ACTIONS,), ("$.Result.UserSessionId", "$.Result.**.UserSessionId"), "user session"
    ),
    DeclaredField(
        "id", (ACTIONS,), ("$.Result.SessionId", "$.Result.SessionInfos[*].SessionId"), "session"
    ),
    DeclaredField(
        "prose",
        (ACTIONS,),
        (
            "$.ResponseMetadata.Error.Message",
            "$.ResponseMetadata.Error.Data.**",
            "$.Result.Logs",
            "$.Result.**Endpoint",
            "$.Result.**Url",
        ),
    ),
    DeclaredField("time", (ACTIONS,), ("$.Result.**At", "$.Result.**Time")),
    DeclaredField(
        "id",
        ("Create*", "Get*", "List*", "Update*", "Delete*", "Release*", "*Session*"),
        ("$.Result.**Id", "$.Result.NextToken"),
    ),
    # the API server
    DeclaredField("id", _SESSIONS, ("$.id", "$[*].id"), "session"),
    DeclaredField("time", _SESSIONS, ("$.lastUpdateTime", "$[*].lastUpdateTime")),
    DeclaredField("id", _TURNS, _of_events("id"), "event"),
    DeclaredField("id", _TURNS, _of_events("invocationId"), "invocation"),
    DeclaredField(
        "id",
        _TURNS,
        _of_events(
            "content.parts[*].functionCall.id",
            "content.parts[*].functionResponse.id",
            "longRunningToolIds[*]",
        ),
        "call",
    ),
    DeclaredField("time", _TURNS, _of_events("timestamp")),
    DeclaredField("time", _RUNS, _of_tasks("error_details.timestamp")),
    DeclaredField(
        "prose",
        (*_TURNS, *_ARTIFACTS),
        ("$.detail", "$.detail[*].msg", *_of_tasks("error_details.**")),
    ),
    DeclaredField("time", _ARTIFACTS, ("**.createTime", "**.updateTime")),
    # MCP and A2A; an answer repeats the number of its request, and an agent's parts are content
    DeclaredField("id", (*_MCP, *_A2A), _of_tasks("id"), CALL),
    DeclaredField("json", _MCP, _of_tasks("result.content[*].text")),
    DeclaredField("prose", (*_MCP, *_A2A), ("**.error.message", "$.error.message")),
    DeclaredField("content", _A2A, ("**.parts[*]**",)),
    DeclaredField("id", _A2A, _of_tasks("**taskId", "result.id", "**task.id"), "task"),
    DeclaredField("id", _A2A, _of_tasks("**contextId"), "context"),
    DeclaredField("id", _A2A, _of_tasks("**messageId"), "message"),
    DeclaredField("id", _A2A, _of_tasks("**artifactId"), "artifact"),
    DeclaredField("time", _A2A, _of_tasks("**status.timestamp")),
    # probes
    DeclaredField("time", _PROBES, ("$.timestamp",)),
)


class Fields:
    """The declared fields of the answers to one operation."""

    def __init__(self, operation: str) -> None:
        self._fields = [field for field in FIELDS if is_operation(operation, field.operations)]
        self._known: dict[str, DeclaredField | None] = {}

    def kind(self, path: str) -> Kind | None:
        """Return the kind of the field at a path, None if it is not declared."""
        field = self._at(path)
        return None if field is None else field.kind

    def noun_of(self, value: Any, path: str) -> str | None:
        """Return the noun of an id, ``time`` for a time at its field, or None."""
        field = self._at(path)
        if field is None or isinstance(value, (bool, type(None))) or value == "":
            return None
        if field.kind == "time":
            return TIME if is_time(value) else None
        return field.noun if field.kind == "id" and isinstance(value, (str, int)) else None

    def _at(self, path: str) -> DeclaredField | None:
        like = _INDEX.sub("[0]", path)  # elements of an array are alike, and there may be many
        if like not in self._known:
            fields = (field for field in self._fields if is_path(like, field.paths))
            self._known[like] = next(fields, None)
        return self._known[like]
