"""The InvokeTool action: read its request, run the operation, give the result of section 2.7."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from agentdouble import ledger
from agentdouble.control_plane.codes import public_error, sandbox_error
from agentdouble.errors import ActionError, NotBuiltError, SandboxError
from agentdouble.sandbox import languages
from agentdouble.sandbox.instance import Instance
from agentdouble.sandbox.instances import Instances
from agentdouble.sandbox.result import ExecutionResult
from agentdouble.settings import Settings

_Model = TypeVar("_Model", bound=BaseModel)
_PUBLISHED_CHARS = re.compile(r"[A-Za-z0-9_-]{1,200}")
_MAX_TTL_S = 86_400


def _numeric_string(value: Any) -> Any:
    """Accept ``"1800"`` for 1800: some real clients send their environment's string."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    return value


class InvokeToolRequest(BaseModel):
    """The body of InvokeTool (U-INVOKETOOL-WIRE); ``Ttl`` is in seconds."""

    model_config = ConfigDict(strict=True, frozen=True)

    ToolId: str
    UserSessionId: str | None = None
    SessionId: str | None = None
    OperationType: Literal["RunCode", "ExecBash"]
    OperationPayload: str
    Ttl: Annotated[int | None, BeforeValidator(_numeric_string), Field(ge=1, le=_MAX_TTL_S)] = None


class RunCodePayload(BaseModel):
    """The JSON inside OperationPayload of RunCode; ``timeout`` is in seconds."""

    model_config = ConfigDict(strict=True, frozen=True)

    code: str
    timeout: int | None = Field(None, ge=1)
    kernel_name: str = "python3"


class InvokeTool:
    """Runs InvokeTool requests in the sandbox of the one tool that there is."""

    def __init__(self, instances: Instances, settings: Settings) -> None:
        self._instances = instances
        self._settings = settings

    async def __call__(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Run one request and return the Result of section 2.8; raise ActionError."""
        ledger.choose("U-INVOKETOOL-WIRE")
        request = _parse(InvokeToolRequest, body, "")
        if request.ToolId != self._settings.tool_id:
            raise ActionError(
                "InvalidResource.NotFound",
                f"There is no tool {request.ToolId!r}; this double has {self._settings.tool_id!r}.",
                status=404,
            )
        if request.OperationType != "RunCode":
            raise sandbox_error(NotBuiltError(f"The operation {request.OperationType}"))
        payload = self._payload(request.OperationPayload)
        timeout_s = self._timeout_s(payload)
        try:
            languages.find(payload.kernel_name)  # a request that is refused makes no instance
            instance = await self._instance(request)
            result = await self._instances.execute(
                instance, payload.code, payload.kernel_name, timeout_s
            )
        except (SandboxError, NotBuiltError) as error:
            raise sandbox_error(error) from error
        return {
            "ToolId": request.ToolId,
            "UserSessionId": instance.key.user_session_id,
            "SessionId": instance.id,
            "Endpoint": "",
            "InternalEndpoint": "",
            "Result": _inner(result, instance, payload.kernel_name),
        }

    def _payload(self, text: str) -> RunCodePayload:
        payload = _parse(RunCodePayload, _json_object(text), "OperationPayload.")
        if not payload.code.strip():
            raise _invalid("OperationPayload.code", "it is empty")
        if "\0" in payload.code:  # on Python 3.10 a kernel never replies to it
            raise _invalid("OperationPayload.code", "it has a NUL character")
        try:
            size = len(payload.code.encode())
        except UnicodeEncodeError as error:
            reason = f"it is no valid Unicode text at position {error.start}"
            raise _invalid("OperationPayload.code", reason) from None
        limit = self._settings.code_limit
        if size > limit:
            raise _invalid("OperationPayload.code", f"it has {size} bytes; the limit is {limit}")
        return payload

    def _timeout_s(self, payload: RunCodePayload) -> int:
        ledger.choose("U-EXEC-LIMITS")
        largest = self._settings.exec_timeout_max_s
        if payload.timeout is None:
            return min(self._settings.exec_timeout_s, largest)
        if payload.timeout > largest:
            raise _invalid("OperationPayload.timeout", f"it is larger than {largest} seconds")
        return payload.timeout

    async def _instance(self, request: InvokeToolRequest) -> Instance:
        if request.UserSessionId is not None:
            _check_user_session_id(request.UserSessionId)
            return await self._instances.get_or_create(
                request.ToolId, request.UserSessionId, request.Ttl
            )
        if request.SessionId is None:
            raise _missing("UserSessionId")
        instance = await self._instances.by_id(request.SessionId, request.Ttl)
        if instance is None:
            raise ActionError(
                "InvalidResource.NotFound",
                f"There is no session instance {request.SessionId!r}.",
                status=404,
            )
        return instance


def _check_user_session_id(value: str) -> None:
    if ledger.choose("U-USER-SESSION-CHARS") == "printable":
        if not (1 <= len(value) <= 200 and value.isprintable()):
            raise _invalid("UserSessionId", "it must have 1 to 200 printable characters")
    elif not _PUBLISHED_CHARS.fullmatch(value):
        raise _invalid(
            "UserSessionId",
            f"{value[:200]!r} is not 1 to 200 letters, digits, '_' and '-'. run_code makes it of "
            "agent, user_id and session_id; the alternative 'printable' of U-USER-SESSION-CHARS "
            "allows other characters",
        )


def _json_object(text: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _invalid("OperationPayload", f"it holds no JSON: {error}") from None
    if not isinstance(document, dict):
        raise _invalid("OperationPayload", "it holds no JSON object")
    return document


def _parse(model: type[_Model], document: Mapping[str, Any], prefix: str) -> _Model:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = prefix + ".".join(str(part) for part in first["loc"])
        if first["type"] == "missing":
            raise _missing(field) from None
        raise _invalid(field, first["msg"]) from None


def _missing(field: str) -> ActionError:
    return public_error("MissingParameter", f"The request is missing {field} parameter.")


def _invalid(field: str, why: str) -> ActionError:
    return ActionError("InvalidParameter", f"The parameter {field} is invalid: {why}.")


def _inner(result: ExecutionResult, instance: Instance, kernel_name: str) -> str:
    """Return the JSON of section 2.7, escaped as the platform's own Go server escapes it."""
    success = result.status == "ok"
    if result.status == "error" and ledger.choose("U-EXEC-SUCCESS") == "true":
        success = True
    document = {
        "success": success,
        "message": result.message,
        "data": {
            "kernel_name": kernel_name,
            "session_id": instance.id,
            "status": result.status,
            "execution_count": result.execution_count,
            "outputs": [output.to_dict() for output in result.outputs],
            "code": result.code,
            "msg_id": result.msg_id,
        },
    }
    text = json.dumps(document, indent=2, ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
