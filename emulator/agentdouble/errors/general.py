"""Exceptions of the command line, the settings, the state, the control plane, agents and MCP services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentdouble.errors.tracebacks import ShownShort


class AgentDoubleError(ShownShort, Exception):
    """The base of every exception that agentdouble raises on purpose."""


class SettingsError(AgentDoubleError):
    """A setting is unknown or has a wrong value.

    ``key`` is its name, ``source`` its place, and ``reason`` says what is wrong with the value.
    """

    def __init__(self, message: str, *, key: str, source: str, reason: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.source = source
        self.reason = reason


class DeclarationError(SettingsError):
    """A runtime cannot be as its table says; ``reason`` says why, ``name`` is the runtime's."""

    def __init__(self, name: object, key: str, reason: str) -> None:
        self.name = name if isinstance(name, str) else ""
        runtime = f" (of the runtime {self.name[:100]!r})" if self.name else ""
        end = "" if reason.endswith("?") else "."
        message = f"The setting {key}{runtime} is wrong: {reason}{end}"
        super().__init__(message, key=key, source="the settings", reason=reason)


class LedgerError(AgentDoubleError):
    """An unknown or an alternative does not exist or is not built; ``unknown`` is the id."""

    def __init__(self, message: str, *, unknown: str) -> None:
        super().__init__(message)
        self.unknown = unknown


class ProfileError(LedgerError):
    """A profile cannot be read or has a name that does not exist; ``file`` is its file."""

    def __init__(self, message: str, *, file: object, unknown: str = "") -> None:
        super().__init__(message, unknown=unknown)
        self.file = str(file)


class MissingExtraError(AgentDoubleError):
    """A part needs an extra that is not installed; ``extra`` is its name."""

    def __init__(self, feature: str, *, extra: str) -> None:
        super().__init__(
            f"{feature} needs the extra {extra!r}. Install it: pip install 'agentdouble[{extra}]'"
        )
        self.extra = extra


class NotRunningError(AgentDoubleError, RuntimeError):
    """A call needs a running double, or a double is started a second time."""


class NotBuiltError(AgentDoubleError):
    """The platform has a part that the double does not have yet; ``what`` is its name.

    ``instead`` is a sentence that says what to do.
    """

    code = "NotImplemented"
    status = 501

    def __init__(self, feature: str, instead: str = "") -> None:
        lacking = "is part of the platform, but this version of agentdouble has not built it yet."
        super().__init__(f"{feature} {lacking} {instead}".rstrip())
        self.what = feature


class FaultError(AgentDoubleError):
    """A fault cannot be armed as requested, or does not exist; ``field`` is the wrong field."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class PartError(AgentDoubleError, ValueError):
    """A double has no part of a name that a reset should keep; ``name`` is that name."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        super().__init__(f"A reset cannot keep {name[:80]!r}; it can keep {', '.join(names)}.")
        self.name = name


class AddressInUseError(AgentDoubleError):
    """Another program listens on ``host:port``."""

    def __init__(self, host: str, port: int, *, option: str = "--port") -> None:
        super().__init__(
            f"Port {port} on {host} is in use. Choose another one, for example {option} {port + 1}, "
            f"or {option} 0 for any that is free."
        )
        self.host = host
        self.port = port


class StateError(AgentDoubleError):
    """The state cannot be kept; ``where`` is its file or URL.

    ``status`` is the HTTP status of a request that needs the state: 507 if there is no space,
    otherwise 503.
    """

    code = "StateError"

    def __init__(self, message: str, *, where: str, status: int = 503) -> None:
        super().__init__(message)
        self.where = where
        self.status = status


class AnswerLostError(AgentDoubleError):
    """A server behind this one does not answer or breaks off; the message says what was observed.

    ``unreached`` is true if there was no connection, ``silent`` if there was no answer at all.
    """

    def __init__(self, reason: str, *, unreached: bool = False, silent: bool = False) -> None:
        super().__init__(reason)
        self.unreached = unreached
        self.silent = silent


class ModelError(AgentDoubleError):
    """A request to the model, or a script for it, is refused.

    ``status`` and ``code`` are those of the answer, in the wire form of the request, and ``param``
    is the field that is wrong.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        code: str = "invalid_request",
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param


class ApiError(AgentDoubleError):
    """A request to the API server is refused; ``detail`` is the detail in the answer's body."""

    def __init__(self, status: int, detail: Any) -> None:
        super().__init__(str(detail))
        self.status = status
        self.detail = detail


class SessionNotFoundError(ApiError):
    """There is no session of that id, or it was deleted meanwhile."""

    def __init__(self, detail: str) -> None:
        super().__init__(404, detail)


class AgentError(AgentDoubleError):
    """An agent or an agents directory breaks its contract; ``app`` is the application's name."""

    def __init__(self, message: str, *, app: str) -> None:
        super().__init__(message)
        self.app = app


class AgentNotFoundError(AgentError):
    """The agents directory has no application of that name."""


class AgentLoadError(AgentError):
    """An application of the agents directory cannot be imported, or has no agent."""


class AgentYieldError(AgentError, TypeError):
    """An agent yielded, or put into its state, a value that no event can carry."""


class RunEndedError(AgentError):
    """An agent uses its session after its run has ended."""


class ApplicationLoadError(AgentDoubleError):
    """An application cannot be imported or served; ``spec`` is the argument that names it."""

    def __init__(self, message: str, *, spec: str) -> None:
        super().__init__(message)
        self.spec = spec


class DecorationError(AgentDoubleError, TypeError):
    """A function breaks the decorator contract of section 4.6; ``decorator`` is its name."""

    def __init__(self, message: str, *, decorator: str) -> None:
        super().__init__(message)
        self.decorator = decorator


class CardError(AgentDoubleError, ValueError):
    """An agent card, or the URL it is made for, lacks required fields; ``fields`` names them."""

    def __init__(self, message: str, *, fields: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.fields = tuple(fields)


class TurnTimeoutError(AgentDoubleError):
    """A turn of an A2A executor took longer than ``limit_s`` seconds."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"It did not end within {limit_s:g} s.")
        self.limit_s = limit_s


class ActionError(AgentDoubleError):
    """A control-plane action is refused; ``code`` is the platform's, ``status`` the HTTP status.

    ``data``, if any, becomes the error's ``Data`` in the answer, and ``retry_after_s`` its header
    ``Retry-After``.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int = 400,
        data: Mapping[str, Any] | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.data = data
        self.retry_after_s = retry_after_s


class SignatureError(AgentDoubleError):
    """A signature does not verify; ``code`` is the platform's own error code.

    ``data`` of SignatureDoesNotMatch has the CanonicalRequest and the StringToSign of the verifier,
    and what Differs, if known. It contains no secrets.
    """

    def __init__(self, code: str, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class EnvelopeError(AgentDoubleError):
    """An answer is not the envelope of section 2.8; ``status`` is its HTTP status."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class PlatformError(AgentDoubleError):
    """The platform answered with an error envelope.

    ``code``, ``message`` and ``request_id`` are the platform's, ``status`` is the HTTP status.
    """

    def __init__(self, code: str, message: str, *, status: int, request_id: str) -> None:
        super().__init__(f"{code}: {message} (HTTP {status}, request {request_id or 'without id'})")
        self.code = code
        self.message = message
        self.status = status
        self.request_id = request_id


class RunCodeError(AgentDoubleError):
    """run_code does not have everything that it needs to call the platform."""


class ToolIdMissingError(RunCodeError):
    """No tool id in the tool context or the environment (RUN-02)."""


class CredentialsMissingError(RunCodeError):
    """No credentials in the tool context or the environment (RUN-03)."""


_BY_VARIABLES = (
    "Is the platform running, and do PLATFORM_TOOL_HOST and PLATFORM_TOOL_SCHEME (https unless it "
    "says http) name it? 'agentdouble env' prints them for a running double."
)


class PlatformUnreachableError(RunCodeError):
    """Nothing answers at the platform's address; ``url`` is that address."""

    def __init__(self, url: str, reason: str, *, advice: str = _BY_VARIABLES) -> None:
        super().__init__(f"Nothing answers at {url} ({reason}). {advice}")
        self.url = url


class DefinitionError(AgentDoubleError):
    """A definition of an HTTP API cannot become tools.

    ``location`` is a JSON pointer into the document, or ``""``; ``source`` names the
    document.
    """

    code = "InvalidParameter"
    status = 400

    def __init__(self, reason: str, *, location: str = "", source: str = "the definition") -> None:
        at = f" at {location}" if location else ""
        super().__init__(f"{source[:1].upper()}{source[1:]} cannot be used{at}: {reason}.")
        self.reason = reason
        self.place = location
        self.source = source


class ToolCallError(AgentDoubleError):
    """A tool that calls an HTTP API did not finish; the message is for the caller."""


class McpServiceError(AgentDoubleError):
    """An MCP service is not available or cannot handle a request; ``service`` is its name."""

    code = "InternalError"  # in the answer of a control-plane action
    status = 500

    def __init__(self, message: str, *, service: str) -> None:
        super().__init__(message)
        self.service = service


class UnknownServiceError(McpServiceError):
    """No MCP service has this name or id; ``known`` are the existing names."""

    code = "InvalidResource.NotFound"
    status = 404

    def __init__(self, service: str, names: Sequence[str]) -> None:
        listed = ", ".join(repr(name) for name in names) or "none"
        super().__init__(
            f"There is no MCP service {service!r}; this double has {listed}.", service=service
        )
        self.known = tuple(names)


class ServiceNameError(McpServiceError):
    """A name that is not valid in ``/mcp/<service_name>``."""

    code = "InvalidParameter"
    status = 400

    def __init__(self, service: str) -> None:
        super().__init__(
            f"{service!r} is not a valid name for an MCP service. A name is part of the address: use 1 to "
            "128 ASCII letters, digits, '.', '_' and '-', beginning with a letter or digit.",
            service=service,
        )


class ServiceNameTakenError(McpServiceError):
    """Another MCP service has the name."""

    code = "InvalidResource.AlreadyExists"
    status = 409

    def __init__(self, service: str) -> None:
        super().__init__(
            f"MCP service {service!r} already exists. Delete it, or use another name.",
            service=service,
        )


class ServiceKeyError(McpServiceError):
    """A key of an MCP service cannot be sent or does not exist."""

    code = "InvalidParameter"
    status = 400


class BackendError(McpServiceError):
    """No MCP service can be created for a backend."""

    code = "InvalidParameter"
    status = 400
