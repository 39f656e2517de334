"""The InvokeTool action: read its request, run the operation, give the result of section 2.7."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agentdouble import ledger, threads
from agentdouble.control_plane.action_errors import invalid, missing
from agentdouble.control_plane.wire import Seconds, check_user_session_id, read
from agentdouble.sandbox import languages
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.instances import Instances
from agentdouble.sandbox.result import ExecutionResult
from agentdouble.sandbox.tools import Tools
from agentdouble.settings import Settings


class InvokeToolRequest(BaseModel):
    """The body of InvokeTool (U-INVOKETOOL-WIRE); ``Ttl`` is in seconds."""

    model_config = ConfigDict(strict=True, frozen=True)

    ToolId: str
    UserSessionId: str | None = None
    SessionId: str | None = None
    OperationType: Literal["RunCode", "ExecBash"]
    OperationPayload: str
    Ttl: Seconds | None = None


_SMALL = 16 * 1024  # characters and items, written in a tenth of a millisecond


class RunCodePayload(BaseModel):
    """The JSON inside OperationPayload of RunCode; ``timeout`` is in seconds."""

    model_config = ConfigDict(strict=True, frozen=True)

    code: str
    timeout: int | None = Field(None, ge=1)
    kernel_name: str = "python3"


class ExecBashPayload(BaseModel):
    """The JSON inside OperationPayload of ExecBash; times are in seconds.

    ``timeout`` ends the waiting, ``hard_timeout`` the command.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    command: str
    timeout: int | None = Field(None, ge=1)
    exec_dir: str | None = None
    env: dict[str, str | None] | None = None
    hard_timeout: int | None = Field(None, ge=1)
    max_output_length: int = Field(30_000, ge=0)


class InvokeTool:
    """Runs InvokeTool requests in the sessions of the tools."""

    def __init__(self, instances: Instances, tools: Tools, settings: Settings) -> None:
        self._instances = instances
        self._tools = tools
        self._settings = settings

    async def __call__(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Run one request and return the Result of section 2.8; raise ActionError."""
        ledger.choose("U-INVOKETOOL-WIRE")
        request = read(InvokeToolRequest, body)
        self._tools.get(request.ToolId)
        operation = self._run_code if request.OperationType == "RunCode" else self._exec_bash
        instance, inner = await operation(request)
        return {
            "ToolId": request.ToolId,
            "UserSessionId": instance.key.user_session_id,
            "SessionId": instance.id,
            "Endpoint": "",
            "InternalEndpoint": "",
            "Result": await _written(inner),
        }

    async def _run_code(self, request: InvokeToolRequest) -> tuple[Instance, dict[str, Any]]:
        payload = self._payload(request.OperationPayload)
        timeout_s = self._timeout_s(payload)
        languages.find(payload.kernel_name)  # a request that is refused makes no instance
        instance = await self._instance(request)
        result = await self._instances.execute(
            instance,
            payload.code,
            payload.kernel_name,
            timeout_s,
            publisher=self._instances.feed.publisher(instance.key),
        )
        return instance, _inner(result, instance, payload.kernel_name)

    async def _exec_bash(self, request: InvokeToolRequest) -> tuple[Instance, dict[str, Any]]:
        document = _json_object(request.OperationPayload)
        payload = read(ExecBashPayload, document, "OperationPayload.")
        _check_command(payload, self._settings)
        instance = await self._instance(request)
        publisher = self._instances.feed.publisher(instance.key)
        default_s = min(self._settings.exec_timeout_s, self._settings.exec_timeout_max_s)
        command = {"timeout": default_s, **payload.model_dump(exclude_none=True)}
        return instance, await instance.exec_bash(command, publisher)

    def _payload(self, text: str) -> RunCodePayload:
        payload = read(RunCodePayload, _json_object(text), "OperationPayload.")
        if not payload.code.strip():
            raise invalid("OperationPayload.code", "it is empty")
        if "\0" in payload.code:  # on Python 3.10 a kernel never replies to it
            raise invalid("OperationPayload.code", "it has a NUL character")
        try:
            size = len(payload.code.encode())
        except UnicodeEncodeError as error:
            reason = f"it is no valid Unicode text at position {error.start}"
            raise invalid("OperationPayload.code", reason) from None
        limit = self._settings.code_limit
        if size > limit:
            raise invalid("OperationPayload.code", f"it has {size} bytes; the limit is {limit}")
        return payload

    def _timeout_s(self, payload: RunCodePayload) -> int:
        ledger.choose("U-EXEC-LIMITS")
        largest = self._settings.exec_timeout_max_s
        if payload.timeout is None:
            return min(self._settings.exec_timeout_s, largest)
        if payload.timeout > largest:
            raise invalid("OperationPayload.timeout", f"it is larger than {largest} seconds")
        return payload.timeout

    async def _instance(self, request: InvokeToolRequest) -> Instance:
        """Return the instance of a request; one that names it twice must name the same."""
        if request.SessionId is None:
            return await self._of_user_session(request)
        instance = await self._instances.look_up(request.SessionId, request.ToolId)
        theirs = instance.key.user_session_id
        if request.UserSessionId not in (None, theirs):
            raise invalid("UserSessionId", f"the session {instance.id!r} is that of {theirs!r}")
        return await self._instances.get_or_create(request.ToolId, theirs, request.Ttl)

    async def _of_user_session(self, request: InvokeToolRequest) -> Instance:
        if request.UserSessionId is None:
            raise missing("UserSessionId")
        check_user_session_id(request.UserSessionId)
        return await self._instances.get_or_create(
            request.ToolId, request.UserSessionId, request.Ttl
        )


def _check_command(payload: ExecBashPayload, settings: Settings) -> None:
    """Refuse a command that cannot be run; raise ActionError."""
    ledger.choose("U-EXEC-LIMITS")
    if not payload.command.strip():
        raise invalid("OperationPayload.command", "it is empty")
    for name in ("command", "exec_dir"):
        text = getattr(payload, name) or ""
        if "\0" in text:
            raise invalid(f"OperationPayload.{name}", "it has a NUL character")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise invalid(f"OperationPayload.{name}", "it is no valid Unicode text")
    size, limit = len(payload.command.encode()), settings.code_limit
    if size > limit:
        raise invalid("OperationPayload.command", f"it has {size} bytes; the limit is {limit}")
    largest = settings.exec_timeout_max_s
    if payload.timeout is not None and payload.timeout > largest:
        raise invalid("OperationPayload.timeout", f"it is larger than {largest} seconds")


def _json_object(text: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise invalid("OperationPayload", f"it holds no JSON: {error}") from None
    if not isinstance(document, dict):
        raise invalid("OperationPayload", "it holds no JSON object")
    return document


def _inner(result: ExecutionResult, instance: Instance, kernel_name: str) -> dict[str, Any]:
    """Return the document of section 2.7."""
    return {
        "success": result.succeeded,
        "message": result.message,
        "data": result.to_data(instance.id, kernel_name),
    }


async def _written(document: Mapping[str, Any]) -> str:
    """Return a document as JSON; one that is large in a thread, where it may wait for others."""
    if _is_small(document):
        return _go_json(document)
    return await threads.run_in_thread(lambda: _go_json(document))


def _is_small(document: Any) -> bool:
    left, room = [document], _SMALL
    while left and room >= 0:
        one = left.pop()
        room -= len(one) if isinstance(one, (str, list, dict)) else 1
        if isinstance(one, (list, dict)):
            left += one.values() if isinstance(one, dict) else one
    return room >= 0


def _go_json(document: Mapping[str, Any]) -> str:
    """Return a document as JSON, escaped as the platform's own Go server escapes it."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
