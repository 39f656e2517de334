"""The platform's error codes, as its public pages name them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agentdouble.errors import (
    ActionError,
    AuthorizerError,
    BackendError,
    BrowserError,
    BrowserMissingError,
    DefinitionError,
    DirectoryError,
    FixedToolError,
    HostingError,
    InstanceBusyError,
    InstanceEndedError,
    InstancePausedError,
    KernelStartError,
    McpServiceError,
    NotBuiltError,
    PageError,
    ResourceExhaustedError,
    RuntimeEndedError,
    RuntimeNameError,
    RuntimeStartError,
    SandboxError,
    ServiceKeyError,
    ServiceNameError,
    ServiceNameTakenError,
    ToolNameTakenError,
    TooManyBrowsersError,
    TooManyInstancesError,
    TooManyNotebooksError,
    UnknownInstanceError,
    UnknownLanguageError,
    UnknownRuntimeError,
    UnknownServiceError,
    UnknownSessionError,
    UnknownToolError,
    UnknownToolsetError,
    UnknownVersionError,
    WorkbenchError,
)


@dataclass(frozen=True)
class Code:
    """A public error code: its number, where that is published, and its HTTP status."""

    number: int | None
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
    "InvalidSecurityToken": Code(None, 401),  # real clients know the name; no page numbers it
}

_REFUSALS: dict[type[Exception], tuple[str, int]] = {
    UnknownToolError: ("InvalidResource.NotFound", 404),
    UnknownSessionError: ("InvalidResource.NotFound", 404),
    ToolNameTakenError: ("InvalidResource.AlreadyExists", 409),
    FixedToolError: ("InvalidResource.Fixed", 409),
    UnknownLanguageError: ("InvalidParameter", 400),
    DirectoryError: ("InvalidParameter", 400),
    TooManyInstancesError: ("QuotaExceeded", 429),
    ResourceExhaustedError: ("QuotaExceeded", 429),
    TooManyNotebooksError: ("QuotaExceeded", 429),
    InstanceBusyError: ("InvalidResource.Busy", 409),
    InstancePausedError: ("InvalidResource.Paused", 409),
    InstanceEndedError: ("InvalidResource.NotFound", 404),
    KernelStartError: ("ErrCreateSessionFail", 500),
    WorkbenchError: ("InternalError.Workbench", 502),
    BrowserError: ("InternalError.Browser", 502),
    BrowserMissingError: ("InternalError.Browser", 503),
    TooManyBrowsersError: ("QuotaExceeded", 429),
    PageError: ("InternalError.Browser", 502),
    UnknownServiceError: ("InvalidResource.NotFound", 404),
    UnknownToolsetError: ("InvalidResource.NotFound", 404),
    ServiceNameTakenError: ("InvalidResource.AlreadyExists", 409),
    ServiceNameError: ("InvalidParameter", 400),
    ServiceKeyError: ("InvalidParameter", 400),
    BackendError: ("InvalidParameter", 400),
    DefinitionError: ("InvalidParameter", 400),
    UnknownRuntimeError: ("InvalidAgentKitRuntime.NotFound", 404),  # real clients know the name
    UnknownInstanceError: ("InvalidResource.NotFound", 404),
    UnknownVersionError: ("InvalidResource.NotFound", 404),
    RuntimeNameError: ("InvalidResource.AlreadyExists", 409),
    RuntimeStartError: ("InternalError.Runtime", 502),
    RuntimeEndedError: ("InvalidAgentKitRuntime.NotFound", 404),
    AuthorizerError: ("InvalidParameter", 400),
    NotBuiltError: ("NotImplemented", 501),
}


def public_error(code: str, message: str) -> ActionError:
    """Return an error of the public table, with its HTTP status."""
    return ActionError(code, message, status=PUBLIC[code].status)


Refused = SandboxError | McpServiceError | HostingError | DefinitionError | NotBuiltError
_REFUSED = (SandboxError, McpServiceError, HostingError, DefinitionError, NotBuiltError)


def refused(error: Refused) -> ActionError:
    """Return what a surface refuses as the control plane says it."""
    code, status = _REFUSALS.get(type(error), ("InternalError", 500))
    return ActionError(code, str(error), status=status)


@contextmanager
def as_action_errors() -> Iterator[None]:
    """Say what a surface refuses inside as the control plane says it."""
    try:
        yield
    except _REFUSED as error:
        raise refused(error) from error
