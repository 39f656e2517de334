"""The platform's error codes and the actions it has, as its public pages name them."""

from __future__ import annotations

from dataclasses import dataclass

from agentdouble.errors import (
    ActionError,
    InstanceBusyError,
    InstanceEndedError,
    InstancePausedError,
    KernelStartError,
    NotBuiltError,
    SandboxError,
    TooManyInstancesError,
    UnknownLanguageError,
)


@dataclass(frozen=True)
class Code:
    """A public error code: its number and its HTTP status."""

    number: int
    status: int


PUBLIC: dict[str, Code] = {
    "MissingParameter": Code(100002, 400),
    "MissingAuthenticationToken": Code(100003, 401),
    "MissingRequestInfo": Code(100004, 400),
    "MissingSignature": Code(100005, 401),
    "InvalidTimestamp": Code(100006, 400),
    "ServiceNotFound": Code(100007, 404),
    "InvalidActionOrVersion": Code(100008, 404),
    "InvalidAccessKey": Code(100009, 401),
    "SignatureDoesNotMatch": Code(100010, 401),
    "LackPolicy": Code(100012, 403),
    "AccessDenied": Code(100013, 403),
}

NOT_BUILT = frozenset(
    (
        "CreateTool",
        "DeleteTool",
        "GetTool",
        "ListTools",
        "UpdateTool",
        "CreateSession",
        "DeleteSession",
        "GetSession",
        "ListSessions",
        "PauseSession",
        "ResumeSession",
        "SetSessionTtl",
        "GetSessionLogs",
        "CreateSessionSnapshot",
        "DeleteSessionSnapshot",
        "GetSessionSnapshot",
        "ListSessionSnapshots",
        "ResumeSessionFromSnapshot",
        "CreateMCPService",
        "DeleteMCPService",
        "GetMCPService",
        "ListMCPServices",
        "UpdateMCPService",
        "CreateMCPToolset",
        "DeleteMCPToolset",
        "GetMCPToolset",
        "ListMCPToolsets",
        "UpdateMCPToolset",
        "GetMCPTools",
        "ListMCPTools",
        "UpdateMCPTools",
        "CreateRuntime",
        "DeleteRuntime",
        "GetRuntime",
        "ListRuntimes",
        "ReleaseRuntime",
        "UpdateRuntime",
        "GetRuntimeVersion",
        "ListRuntimeVersions",
        "ListRuntimeInstances",
        "GetRuntimeInstanceLogs",
        "GetRuntimeCozeToken",
        "ListRuntimeCrRegistries",
    )
)

_SANDBOX: dict[type[Exception], tuple[str, int]] = {
    UnknownLanguageError: ("InvalidParameter", 400),
    TooManyInstancesError: ("QuotaExceeded", 429),
    InstanceBusyError: ("InvalidResource.Busy", 409),
    InstancePausedError: ("InvalidResource.Paused", 409),
    InstanceEndedError: ("InvalidResource.NotFound", 404),
    KernelStartError: ("ErrCreateSessionFail", 500),
    NotBuiltError: ("NotImplemented", 501),
}


def public_error(code: str, message: str) -> ActionError:
    """Return an error of the public table."""
    return ActionError(code, message, status=PUBLIC[code].status)


def sandbox_error(error: SandboxError | NotBuiltError) -> ActionError:
    """Return a sandbox's error as the control plane says it."""
    code, status = _SANDBOX.get(type(error), ("InternalError", 500))
    return ActionError(code, str(error), status=status)
