"""The InvokeTool action: read its request, run the operation, return the result of section 2.7."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from agentdouble.control_plane import public_errors, wire
from agentdouble.control_plane.action_methods import describe, fields
from agentdouble.core import ledger, strict_json
from agentdouble.errors import CodeNotBegunError
from agentdouble.openapi.operation import described
from agentdouble.sandbox import languages
from agentdouble.sandbox.result import ExecutionResult, ResultData
from agentdouble.sandbox.session import SandboxSession
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.sandbox.tools import Tools
from agentdouble.settings import Settings


class RunCodePayload(wire.Wire):
    """The JSON inside OperationPayload of RunCode; ``timeout`` is in seconds."""

    code: str
    timeout: int | None = Field(None, ge=1)
    kernel_name: str = "python3"


class ExecBashPayload(wire.Wire):
    """The JSON inside OperationPayload of ExecBash; times are in seconds.

    After ``timeout`` the call returns, after ``hard_timeout`` the command ends.
    """

    command: str
    timeout: int | None = Field(None, ge=1)
    exec_dir: str | None = None
    env: dict[str, str | None] | None = None
    hard_timeout: int | None = Field(None, ge=1)
    max_output_length: int = Field(30_000, ge=0)


class ResultDocument(TypedDict):
    """The JSON of section 2.7; ``data`` of ExecBash has other fields."""

    success: bool
    message: str
    data: ResultData | dict[str, Any] | None


def _show_payloads(schema: dict[str, Any]) -> None:
    """Describe the JSON inside the text field, for the OpenAPI document."""
    models = (RunCodePayload, ExecBashPayload)
    schema["contentMediaType"] = "application/json"
    schema["contentSchema"] = {"anyOf": [model.model_json_schema() for model in models]}


class InvokeToolRequest(wire.Wire):
    """The body of InvokeTool (U-INVOKETOOL-WIRE); ``Ttl`` is in seconds."""

    ToolId: str
    UserSessionId: str | None = None
    SessionId: str | None = None
    OperationType: Literal["RunCode", "ExecBash"]
    OperationPayload: str = Field(json_schema_extra=_show_payloads)
    Ttl: wire.Seconds | None = None


def _show_result(schema: dict[str, Any]) -> None:
    schema["contentMediaType"] = "application/json"
    schema["contentSchema"] = TypeAdapter(ResultDocument).json_schema()


_Invoked = fields(
    "InvokeToolResult",
    ToolId=str,
    UserSessionId=str,
    SessionId=str,
    Endpoint=str,
    InternalEndpoint=str,
    Result=Annotated[str, Field(json_schema_extra=_show_result)],
)


@described(
    describe(InvokeToolRequest, _Invoked, "Run code, or a command in bash, in a session of a tool.")
)
class InvokeTool:
    """Runs InvokeTool requests in the sessions of the tools."""

    def __init__(self, sessions: SandboxSessions, tools: Tools, settings: Settings) -> None:
        self._sessions = sessions
        self._tools = tools
        self._settings = settings

    async def __call__(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Run one request and return the Result of section 2.8; raise ActionError."""
        ledger.choose("U-INVOKETOOL-WIRE")
        request = wire.read(InvokeToolRequest, body)
        self._tools.get(request.ToolId)
        operation = self._run_code if request.OperationType == "RunCode" else self._exec_bash
        session, inner = await operation(request)
        return {
            "ToolId": request.ToolId,
            "UserSessionId": session.key.user_session_id,
            "SessionId": session.id,
            "Endpoint": "",
            "InternalEndpoint": "",
            "Result": _go_json(inner),
        }

    async def _run_code(self, request: InvokeToolRequest) -> tuple[SandboxSession, dict[str, Any]]:
        document = _json_object(request.OperationPayload)
        payload = wire.read(RunCodePayload, document, "OperationPayload.")
        self._check("code", payload.code)
        timeout_s = self._timeout_s(payload.timeout)
        languages.find(payload.kernel_name)  # a refused request must not create a session
        session = await self._session(request)
        try:
            result = await self._execute(session, payload, timeout_s)
        except CodeNotBegunError:
            if request.SessionId is not None:
                raise
            session = await self._session(request)
            result = await self._execute(session, payload, timeout_s)
        return session, {
            "success": result.succeeded,
            "message": result.message,
            "data": result.to_data(session.id, payload.kernel_name),
        }

    async def _execute(
        self, session: SandboxSession, payload: RunCodePayload, timeout_s: int
    ) -> ExecutionResult:
        publisher = self._sessions.feed.publisher(session.key)
        return await self._sessions.execute(
            session, payload.code, payload.kernel_name, timeout_s, publisher=publisher
        )

    async def _exec_bash(self, request: InvokeToolRequest) -> tuple[SandboxSession, dict[str, Any]]:
        document = _json_object(request.OperationPayload)
        payload = wire.read(ExecBashPayload, document, "OperationPayload.")
        self._check("command", payload.command)
        if payload.exec_dir:
            self._check("exec_dir", payload.exec_dir)
        timeout_s = self._timeout_s(payload.timeout)
        session = await self._session(request)
        command = {**payload.model_dump(exclude_none=True), "timeout": timeout_s}
        publisher = self._sessions.feed.publisher(session.key)
        answer = await session.processes.exec_bash(command, publisher)
        return session, {**answer, "message": session.take_notice(answer["message"])}

    def _check(self, name: str, text: str) -> None:
        """Refuse text that cannot be run, or that is too long."""
        field = f"OperationPayload.{name}"
        if not text.strip():
            raise public_errors.invalid(field, "it must not be empty")
        if "\0" in text:  # on Python 3.10 a kernel never replies to it
            raise public_errors.invalid(field, "it must not contain NUL characters")
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            reason = f"it is not valid Unicode text at position {error.start}"
            raise public_errors.invalid(field, reason) from None
        limit = self._settings.code_limit
        if size > limit:
            raise public_errors.invalid(field, f"it has {size} bytes; the limit is {limit}")

    def _timeout_s(self, asked_s: int | None) -> int:
        ledger.choose("U-EXEC-LIMITS")
        largest = self._settings.exec_timeout_max_s
        if asked_s is None:
            return min(self._settings.exec_timeout_s, largest)
        if asked_s > largest:
            raise public_errors.invalid(
                "OperationPayload.timeout", f"it is larger than {largest} seconds"
            )
        return asked_s

    async def _session(self, request: InvokeToolRequest) -> SandboxSession:
        """Return the session of a request; two names in a request must mean the same one."""
        name = request.UserSessionId
        if request.SessionId is not None:
            session = await self._sessions.look_up(request.SessionId, request.ToolId)
            owner = session.key.user_session_id
            if name not in (None, owner):
                raise public_errors.invalid(
                    "UserSessionId", f"the session {session.id!r} belongs to {owner!r}"
                )
            return self._sessions.use(session, request.Ttl)
        if name is None:
            raise public_errors.missing("UserSessionId")
        wire.check_user_session_id(name)
        return await self._sessions.get_or_create(request.ToolId, name, request.Ttl)


def _json_object(text: str) -> Mapping[str, Any]:
    try:
        document = strict_json.loads(text)
    except (ValueError, RecursionError) as error:
        raise public_errors.invalid("OperationPayload", f"it is not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise public_errors.invalid("OperationPayload", "it is not a JSON object")
    return document


def _go_json(document: Mapping[str, Any]) -> str:
    """Return a document as JSON, with the escapes of the platform's Go server."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
