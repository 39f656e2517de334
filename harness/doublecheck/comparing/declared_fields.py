"""The fields whose values differ between any two platforms, each with the reason.

A comparison passes over a value only if its field is declared here. An id is not passed over: it
must stand for the same thing everywhere, as ``references.Pairs`` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from doublecheck.comparing.patterns import ACTIONS
from doublecheck.comparing.references import CALL

Kind = Literal["id", "time", "prose", "json", "traceback", "content"]

_INVOKE = ("InvokeTool*",)
_PROBES = ("GET */ping", "GET */health", "GET */readiness", "GET */liveness")
_SESSIONS = ("* */sessions", "* */sessions/{session}")
_RUNS = ("POST */run", "POST */run_sse")
_ARTIFACTS = ("* */artifacts*",)
_MCP = ("/mcp*",)
_A2A = (
    *("* SendMessage", "* SendStreamingMessage", "* GetTask", "* CancelTask", "* ListTasks"),
    *("* SubscribeToTask", "* message/*", "* tasks/*", "* */message:*", "* */tasks*"),
)
_EVENTS = ("$[*]", "events[*]$", "$.events[*]")


@dataclass(frozen=True)
class Field:
    """A field of the answers to some operations, and why its values are not compared as they are.

    An ``id`` is compared by what it stands for, ``prose`` without the ids and times in it, ``json``
    by its structure. A ``time`` and a ``traceback`` only have to be there. ``content`` is compared as
    it is, whatever follows in the list.
    """

    kind: Kind
    operations: tuple[str, ...]
    paths: tuple[str, ...]
    reason: str
    noun: str = "id"


def _of_events(*names: str) -> tuple[str, ...]:
    return tuple(f"{event}.{name}" for event in _EVENTS for name in names)


FIELDS = (
    # the sandbox
    Field(
        "content",
        _INVOKE,
        ("$.Result.Result.data.outputs[*].data**", "$.Result.Result.data.outputs[*].text"),
        "code said it, not the platform",
    ),
    Field("json", _INVOKE, ("$.Result.Result",), "section 2.8: a text that contains JSON"),
    Field(
        "id",
        _INVOKE,
        ("$.Result.SessionId", "$.Result.Result.data.session_id"),
        "each platform names its instances (section 2.6)",
        "session",
    ),
    Field("id", _INVOKE, ("$.Result.Result.data.msg_id",), "each execution has its own", "message"),
    Field(
        "id", _INVOKE, ("$.Result.Result.data.command_id",), "each command has its own", "command"
    ),
    Field(
        "traceback",
        _INVOKE,
        ("$.Result.Result.data.outputs[*].traceback",),
        "its lines name files of the platform; ename and evalue beside it are compared",
    ),
    # the control plane
    Field(
        "id", (ACTIONS,), ("$.ResponseMetadata.RequestId",), "each request has its own", "request"
    ),
    Field("id", (ACTIONS,), ("$.Result.ToolId", "$.Result.**.ToolId"), "section 2.6", "tool"),
    Field(
        "id",
        (ACTIONS,),
        ("$.Result.UserSessionId", "$.Result.**.UserSessionId"),
        "callers name them, or the platform does",
        "user session",
    ),
    Field(
        "id",
        (ACTIONS,),
        ("$.Result.SessionId", "$.Result.SessionInfos[*].SessionId"),
        "each platform names its instances (section 2.6)",
        "session",
    ),
    Field(
        "prose",
        (ACTIONS,),
        (
            "$.ResponseMetadata.Error.Message",
            "$.ResponseMetadata.Error.Data.**",
            "$.Result.Logs",
            "$.Result.**Endpoint",
            "$.Result.**Url",
        ),
        "it names what has an id, and when",
    ),
    Field(
        "time",
        (ACTIONS,),
        ("$.Result.**At", "$.Result.**Time"),
        "the clock of the platform",
    ),
    Field(
        "id",
        ("Create*", "Get*", "List*", "Update*", "Delete*", "Release*", "*Session*"),
        ("$.Result.**Id", "$.Result.NextToken"),
        "each platform names its resources",
    ),
    # the API server
    Field(
        "id",
        _SESSIONS,
        ("$.id", "$[*].id"),
        "section 2.3: generated when created without an id",
        "session",
    ),
    Field("time", _SESSIONS, ("$.lastUpdateTime", "$[*].lastUpdateTime"), "when it was used"),
    Field("id", (*_SESSIONS, *_RUNS), _of_events("id"), "each event has its own", "event"),
    Field(
        "id",
        (*_SESSIONS, *_RUNS),
        _of_events("invocationId"),
        "each turn has its own",
        "invocation",
    ),
    Field(
        "id",
        (*_SESSIONS, *_RUNS),
        _of_events(
            "content.parts[*].functionCall.id",
            "content.parts[*].functionResponse.id",
            "longRunningToolIds[*]",
        ),
        "each call of a tool has its own",
        "call",
    ),
    Field("time", (*_SESSIONS, *_RUNS), _of_events("timestamp"), "when it was sent"),
    Field(
        "time",
        _RUNS,
        ("$.error_details.timestamp", "events[*]$.error_details.timestamp"),
        "when it failed",
    ),
    Field(
        "prose",
        (*_SESSIONS, *_RUNS, *_ARTIFACTS),
        ("$.detail", "$.detail[*].msg", "$.error_details.**", "events[*]$.error_details.**"),
        "it names what has an id, and files of the platform",
    ),
    Field("time", _ARTIFACTS, ("**.createTime", "**.updateTime"), "when it was kept"),
    # MCP and A2A
    Field(
        "id",
        (*_MCP, *_A2A),
        ("$.id", "events[*]$.id"),
        "the number of the request, which the answer repeats",
        CALL,
    ),
    Field(
        "json",
        _MCP,
        ("$.result.content[*].text", "events[*]$.result.content[*].text"),
        "the JSON of a structured result, in which white space has no meaning",
    ),
    Field("prose", (*_MCP, *_A2A), ("**.error.message", "$.error.message"), "it names the request"),
    Field("content", _A2A, ("**.parts[*]**",), "the agent said it, not the platform"),
    Field("id", _A2A, ("$.**taskId", "events[*]$.**taskId"), "each task has its own", "task"),
    Field(
        "id",
        _A2A,
        ("$.result.id", "$.**task.id", "events[*]$.result.id", "events[*]$.**task.id"),
        "each task has its own",
        "task",
    ),
    Field(
        "id",
        _A2A,
        ("$.**contextId", "events[*]$.**contextId"),
        "each conversation has its own",
        "context",
    ),
    Field(
        "id",
        _A2A,
        ("$.**messageId", "events[*]$.**messageId"),
        "each message has its own",
        "message",
    ),
    Field(
        "id",
        _A2A,
        ("$.**artifactId", "events[*]$.**artifactId"),
        "each artifact has its own",
        "artifact",
    ),
    Field(
        "time",
        _A2A,
        ("$.**status.timestamp", "events[*]$.**status.timestamp"),
        "when the state began",
    ),
    # probes
    Field("time", _PROBES, ("$.timestamp",), "when it was asked"),
)
