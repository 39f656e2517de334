"""Every exception that agentdouble raises on purpose.

::

    AgentDoubleError
    ├── SettingsError             a setting that is unknown or has a wrong value
    │   └── DeclarationError      a runtime that cannot be what its table says
    ├── LedgerError               an unknown, or an alternative of one, that does not exist
    │   └── ProfileError          a profile that cannot be read, or names what does not exist
    ├── MissingExtraError         a part of agentdouble whose extra is not installed
    ├── NotRunningError           a double is asked for what only a running one does
    ├── NotBuiltError             something the platform has and the double does not have yet
    ├── FaultError                a fault that cannot be armed, or is not armed
    ├── AddressInUseError         a port that another program listens on
    ├── StateError                a state that cannot be opened, read or written
    ├── ApplicationLoadError      an application that cannot be imported or served
    ├── DecorationError           a function that breaks the decorator contract (also a TypeError)
    ├── ToolError                 an MCP tool that cannot be called as it was, or returned nonsense
    │   ├── ToolArgumentsError
    │   └── ToolResultError
    ├── CardError                 an agent card that lacks what a card must have (also a ValueError)
    ├── TurnTimeoutError          an A2A executor whose turn has not ended in time
    ├── ActionError               a control-plane action that is refused, with the platform's code
    ├── SignatureError            a control-plane request whose signature does not verify
    ├── EnvelopeError             an answer that is not the envelope of section 2.8
    ├── PlatformError             an answer that is the platform's error envelope
    ├── ApiError                  a request to the API server that is refused, with its status
    │   └── SessionNotFoundError
    ├── AgentError                an agent, or an agents directory, that does not do its part
    │   ├── AgentNotFoundError
    │   ├── AgentLoadError
    │   ├── AgentYieldError       (also a TypeError)
    │   └── RunEndedError
    ├── DefinitionError           a definition of an HTTP API that cannot become tools
    ├── ToolCallError             a tool that calls an HTTP API did not reach its end
    ├── RunCodeError              run_code lacks what it needs
    │   ├── ToolIdMissingError
    │   ├── CredentialsMissingError
    │   └── PlatformUnreachableError
    ├── McpServiceError           an MCP service that cannot be had, or cannot do what was asked
    │   ├── UnknownServiceError
    │   ├── UnknownToolsetError
    │   ├── ServiceUnansweredError  a service of a toolset does not answer
    │   ├── ServiceNameError      a name that is no segment of a path
    │   ├── ServiceNameTakenError
    │   ├── ServiceKeyError       a key that cannot be sent, or that is not there
    │   ├── BackendError          something that no service can stand in front of
    │   └── BackendLostError      what stands behind a service is not there, or breaks off
    ├── AnswerLostError           a server behind this one is not there, or breaks off
    ├── HostingError              a runtime cannot be had, or cannot do what was asked
    │   ├── AccessError           a caller of a runtime that its gateway does not let in
    │   ├── AuthorizerError       an authentication of callers that cannot be
    │   ├── IssuerError           an issuer of tokens that does not do its part
    │   ├── RuntimeNameError      a name that is no segment of a path, or is taken
    │   ├── RuntimeStartError     an instance that did not start or never got ready
    │   ├── InstanceLostError     an instance is not there any more, or breaks off
    │   ├── RuntimeBusyError      no instance is free, and the queue or the patience is at its end
    │   ├── RuntimeEndedError     it was deleted, or the double stopped, meanwhile
    │   ├── UnknownInstanceError
    │   ├── UnknownVersionError
    │   ├── LogQueryError         a parameter of a question about logs that is wrong
    │   └── UnknownRuntimeError
    ├── LiveError                 what a session's code says cannot be listened to as was asked
    │   ├── LiveRequestError      a request for that, or for completion, is wrong
    │   └── TooManyListenersError
    └── SandboxError              a session instance cannot do what was asked
        ├── UnknownLanguageError
        ├── DirectoryError        code cannot run in the directory that was asked for
        ├── UnknownToolError
        ├── ToolNameTakenError
        ├── FixedToolError
        ├── UnknownSessionError
        ├── TooManyInstancesError
        ├── TooManyNotebooksError
        ├── InstanceBusyError
        ├── InstancePausedError
        ├── InstanceEndedError
        ├── KernelStartError
        ├── WorkbenchError
        ├── BrowserError          a session's browser did not start or has ended
        ├── BrowserMissingError   no Chromium, or no Playwright, on this machine
        ├── TooManyBrowsersError
        └── PageError             a page in a browser did not do what was asked

Messages are for people: what happened, where, what to do. What a program needs is in
the attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agentdouble.tracebacks import ShownShort


class AgentDoubleError(ShownShort, Exception):
    """The base of every exception that agentdouble raises on purpose."""


class SettingsError(AgentDoubleError):
    """A setting is unknown or has a wrong value; ``key`` names it, ``source`` says where it stood."""

    def __init__(self, message: str, *, key: str, source: str) -> None:
        super().__init__(message)
        self.key = key
        self.source = source


class DeclarationError(SettingsError):
    """A runtime cannot be what its table says; ``reason`` says why, ``name`` is the runtime's."""

    def __init__(self, name: object, key: str, reason: str) -> None:
        self.name = name if isinstance(name, str) else ""
        self.reason = reason
        whose = f" (of the runtime {self.name[:100]!r})" if self.name else ""
        end = "" if reason.endswith("?") else "."
        message = f"The setting {key}{whose} is wrong: {reason}{end}"
        super().__init__(message, key=key, source="the settings")


class LedgerError(AgentDoubleError):
    """An unknown, or an alternative of one, does not exist or is not built; ``unknown`` is its id."""

    def __init__(self, message: str, *, unknown: str) -> None:
        super().__init__(message)
        self.unknown = unknown


class ProfileError(LedgerError):
    """A profile cannot be read, or names what does not exist; ``file`` is where it stands."""

    def __init__(self, message: str, *, file: object, unknown: str = "") -> None:
        super().__init__(message, unknown=unknown)
        self.file = str(file)


class MissingExtraError(AgentDoubleError):
    """A part needs an extra that is not installed; ``extra`` names it."""

    def __init__(self, what: str, *, extra: str) -> None:
        super().__init__(
            f"{what} needs the extra {extra!r}. Install it: pip install 'agentdouble[{extra}]'"
        )
        self.extra = extra


class NotRunningError(AgentDoubleError, RuntimeError):
    """A double is asked for what only a running one does, or is to be started a second time."""


class NotBuiltError(AgentDoubleError):
    """The platform has this and the double does not have it yet; ``what`` names it."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} is part of the platform, but this version of agentdouble has not built it yet."
        )
        self.what = what


class FaultError(AgentDoubleError):
    """A fault cannot be armed as it was asked for, or is not there; ``field`` is what is wrong."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


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
    """What is to outlive the process cannot be kept; ``where`` is the file or URL."""

    def __init__(self, message: str, *, where: str) -> None:
        super().__init__(message)
        self.where = where


class ApplicationLoadError(AgentDoubleError):
    """An application cannot be imported or served; ``spec`` is what was asked for."""

    def __init__(self, message: str, *, spec: str) -> None:
        super().__init__(message)
        self.spec = spec


class DecorationError(AgentDoubleError, TypeError):
    """A function breaks the decorator contract of section 4.6; ``decorator`` names the decorator."""

    def __init__(self, message: str, *, decorator: str) -> None:
        super().__init__(message)
        self.decorator = decorator


class ToolError(AgentDoubleError):
    """A call of an MCP tool fails though its function did not; ``tool`` is the tool's name."""

    def __init__(self, message: str, *, tool: str) -> None:
        super().__init__(message)
        self.tool = tool


class ToolArgumentsError(ToolError):
    """A tool cannot take the arguments of a call; the message names each field."""


class ToolResultError(ToolError):
    """A tool returned what it did not announce, or what is no JSON."""


class CardError(AgentDoubleError, ValueError):
    """An agent card, or the URL it is made for, lacks what it must have; ``fields`` names it."""

    def __init__(self, message: str, *, fields: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.fields = tuple(fields)


class TurnTimeoutError(AgentDoubleError):
    """What an A2A executor does took longer than it may; ``limit_s`` is how long that is."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"It did not end within {limit_s:g} s.")
        self.limit_s = limit_s


class ActionError(AgentDoubleError):
    """A control-plane action is refused; ``code`` is the platform's, ``status`` the HTTP status."""

    def __init__(self, code: str, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class SignatureError(AgentDoubleError):
    """A signature does not verify; ``code`` is the platform's own error code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


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


class ApiError(AgentDoubleError):
    """A request to the API server is refused; ``detail`` is what the answer's body says."""

    def __init__(self, status: int, detail: Any) -> None:
        super().__init__(str(detail))
        self.status = status
        self.detail = detail


class SessionNotFoundError(ApiError):
    """There is no session of that id, or it has been deleted meanwhile."""

    def __init__(self, detail: str) -> None:
        super().__init__(404, detail)


class AgentError(AgentDoubleError):
    """An agent, or an agents directory, does not do its part; ``app`` is the application's name."""

    def __init__(self, message: str, *, app: str) -> None:
        super().__init__(message)
        self.app = app


class AgentNotFoundError(AgentError):
    """The agents directory has no application of that name."""


class AgentLoadError(AgentError):
    """An application of the agents directory does not import, or exposes no agent."""


class AgentYieldError(AgentError, TypeError):
    """An agent yielded, or put into its state, what no event can carry."""


class RunEndedError(AgentError):
    """An agent goes on asking for its session after its run has ended."""


class DefinitionError(AgentDoubleError):
    """A definition of an HTTP API cannot become tools.

    ``place`` is where in the document, as a JSON pointer, or ``""``; ``source`` names the document.
    """

    def __init__(self, reason: str, *, place: str = "", source: str = "the definition") -> None:
        at = f" at {place}" if place else ""
        super().__init__(f"{source[:1].upper()}{source[1:]} cannot be used{at}: {reason}.")
        self.reason = reason
        self.place = place
        self.source = source


class ToolCallError(AgentDoubleError):
    """A tool that calls an HTTP API did not reach its end; the message is for the caller."""


class RunCodeError(AgentDoubleError):
    """run_code lacks what it needs to call the platform."""


class ToolIdMissingError(RunCodeError):
    """No tool id in the tool context or the environment (RUN-02)."""


class CredentialsMissingError(RunCodeError):
    """No credentials in the tool context or the environment (RUN-03)."""


class PlatformUnreachableError(RunCodeError):
    """Nothing answers at the platform's address; ``url`` is that address."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"Nothing answers at {url} ({reason}). Is the platform running, and do "
            "PLATFORM_TOOL_HOST and PLATFORM_TOOL_SCHEME (https unless it says http) name it? "
            "'agentdouble env' prints them for a running double."
        )
        self.url = url


class McpServiceError(AgentDoubleError):
    """An MCP service cannot be had, or cannot do what was asked; ``service`` names it."""

    def __init__(self, message: str, *, service: str) -> None:
        super().__init__(message)
        self.service = service


class UnknownServiceError(McpServiceError):
    """A name or an id that no MCP service has; ``known`` are the names there are."""

    def __init__(self, service: str, known: Sequence[str]) -> None:
        shown = ", ".join(repr(one) for one in known) or "none"
        super().__init__(
            f"There is no MCP service {service!r}; this double has {shown}.", service=service
        )
        self.known = tuple(known)


class UnknownToolsetError(McpServiceError):
    """A name or an id that no toolset has; ``known`` are the names there are."""

    def __init__(self, toolset: str, known: Sequence[str]) -> None:
        shown = ", ".join(repr(one) for one in known) or "none"
        super().__init__(
            f"There is no MCP toolset {toolset!r}; this double has {shown}.", service=toolset
        )
        self.known = tuple(known)


class ServiceUnansweredError(McpServiceError):
    """A service of a toolset cannot be asked; ``reason`` says what was seen."""

    def __init__(self, service: str, reason: str) -> None:
        super().__init__(
            f"The MCP service {service!r} does not do its part: {reason}", service=service
        )
        self.reason = reason


class ServiceNameError(McpServiceError):
    """A name that cannot stand in ``/mcp/<service_name>``."""

    def __init__(self, service: str) -> None:
        super().__init__(
            f"{service!r} is no name of an MCP service, for it stands in its address: it has 1 to "
            "128 ASCII letters, digits, '.', '_' and '-', and begins with a letter or digit.",
            service=service,
        )


class ServiceNameTakenError(McpServiceError):
    """Another MCP service has the name."""

    def __init__(self, service: str) -> None:
        super().__init__(
            f"There is an MCP service {service!r} already. Delete it, or take another name.",
            service=service,
        )


class ServiceKeyError(McpServiceError):
    """A key of an MCP service that cannot be sent, or that is not there."""


class BackendError(McpServiceError):
    """Something that no MCP service can stand in front of."""


class BackendLostError(McpServiceError):
    """What stands behind a service breaks off amid its answer."""


class AnswerLostError(AgentDoubleError):
    """A server behind this one is not there, or breaks off; the message says what was seen.

    ``unreached`` where there was no connection, ``silent`` where nobody answered at all.
    """

    def __init__(self, reason: str, *, unreached: bool = False, silent: bool = False) -> None:
        super().__init__(reason)
        self.unreached = unreached
        self.silent = silent


class HostingError(AgentDoubleError):
    """A runtime cannot be had, or cannot do what was asked; ``name`` is the runtime's."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class AccessError(HostingError):
    """A runtime's gateway refuses a caller; ``kind`` is a short name for programs.

    ``status`` is the answer's, ``challenge`` its ``WWW-Authenticate`` where it has one; ``call`` is
    the id of the JSON-RPC call that is refused, where it is one.
    """

    def __init__(
        self,
        name: str,
        message: str,
        *,
        status: int,
        kind: str,
        challenge: str | None = None,
        call: Any = None,
    ) -> None:
        super().__init__(name, message)
        self.status = status
        self.kind = kind
        self.challenge = challenge
        self.call = call


class AuthorizerError(HostingError):
    """Callers of a runtime cannot prove themselves that way; ``name`` is the runtime's, if known."""

    def __init__(self, message: str, *, name: str = "") -> None:
        super().__init__(name, message)


class IssuerError(HostingError):
    """An issuer of tokens does not do its part; ``url`` was asked, ``reason`` says what was seen."""

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__("", f"The issuer of tokens at {url[:200]} {reason}.")


class RuntimeNameError(HostingError):
    """A runtime cannot have that name; ``reason`` says why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, f"A runtime cannot be called {name[:100]!r}: {reason}.")
        self.reason = reason


class RuntimeStartError(HostingError):
    """An instance did not start or never got ready; ``reason`` says what was seen."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            name,
            f"The runtime {name!r} did not start: {reason}. "
            f"What it printed: agentdouble runtime logs {name}",
        )
        self.reason = reason


class RuntimeBusyError(HostingError):
    """No instance is free for a request; ``reason`` says why, ``retry_after_s`` when to ask again."""

    def __init__(self, name: str, reason: str, retry_after_s: int) -> None:
        super().__init__(
            name, f"The runtime {name!r} is busy: {reason}. Ask again in {retry_after_s} s."
        )
        self.reason = reason
        self.retry_after_s = retry_after_s


class RuntimeEndedError(HostingError):
    """A runtime has been ended, and no request reaches it any more; ``reason`` says why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, f"The runtime {name!r} has ended: {reason}.")
        self.reason = reason


class UnknownVersionError(HostingError):
    """A runtime has no version of that number, or none any more; ``known`` are those it has."""

    def __init__(self, name: str, number: int, known: Sequence[int]) -> None:
        has = f"{known[0]} to {known[-1]}" if len(known) > 1 else f"only {known[0]}"
        super().__init__(name, f"The runtime {name!r} has no version {number}; it has {has}.")
        self.number = number
        self.known = tuple(known)


class UnknownInstanceError(HostingError):
    """A runtime has no instance of that name; ``known`` are those it has."""

    def __init__(self, name: str, instance: str, known: Iterable[str] = ()) -> None:
        self.instance = instance
        self.known = tuple(known)
        has = f"it has {', '.join(self.known)}" if self.known else "it has none at the moment"
        super().__init__(name, f"The runtime {name!r} has no instance {instance[:100]!r}; {has}.")


class LogQueryError(HostingError):
    """A parameter of a question about logs is wrong; ``parameter`` names it."""

    def __init__(self, parameter: str, reason: str) -> None:
        super().__init__("", f"The parameter {parameter[:100]!r} {reason}.")
        self.parameter = parameter


class InstanceLostError(HostingError):
    """An instance is not there, or breaks off; ``instance`` is its name.

    ``unreached`` where the request cannot have reached it, ``amid`` where its answer had begun.
    """

    def __init__(
        self,
        name: str,
        instance: str,
        reason: str,
        *,
        unreached: bool = False,
        amid: bool = False,
    ) -> None:
        failed = "broke off amid its answer" if amid else "did not answer"
        reached = "did not reach" if unreached else "may have reached"
        super().__init__(
            name,
            f"The instance {instance!r} of the runtime {name!r} {failed}: {reason}. The "
            f"request {reached} it. What it printed: agentdouble runtime logs {name}",
        )
        self.instance = instance
        self.reason = reason
        self.unreached = unreached
        self.amid = amid


class UnknownRuntimeError(HostingError):
    """There is no such runtime; ``known`` are the names there are."""

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        self.known = tuple(known)
        there = f"There are {', '.join(self.known)}." if self.known else "There is none at all."
        super().__init__(name, f"There is no runtime {name[:100]!r}. {there}")


class LiveError(AgentDoubleError):
    """What a session's code says cannot be listened to as it was asked."""


class LiveRequestError(LiveError):
    """A request for live outputs or for completion is wrong; ``field`` names what of it is."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field!r} {reason}.")
        self.field = field


class TooManyListenersError(LiveError):
    """As many listen to what code says as may; ``limit`` is how many that is."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"{limit} listen to the outputs of sessions, which is as many as may: end some."
        )
        self.limit = limit


class SandboxError(AgentDoubleError):
    """A session instance cannot do what was asked."""


class UnknownLanguageError(SandboxError):
    """A language that the sandbox does not run; ``known`` are those it does."""

    def __init__(self, language: str, known: Sequence[str]) -> None:
        super().__init__(f"The language {language!r} is not known. Known are: {', '.join(known)}.")
        self.language = language
        self.known = tuple(known)


class DirectoryError(SandboxError):
    """A directory of the session in which code cannot run."""

    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(f"Code cannot run in the directory {directory!r}: {reason}.")
        self.directory = directory


class UnknownToolError(SandboxError):
    """A tool id that no tool has, or none any more; ``known`` are some of those there are."""

    def __init__(self, tool_id: str, known: Sequence[str]) -> None:
        shown = ", ".join(repr(one) for one in known)
        super().__init__(f"There is no tool {tool_id!r}; this double has {shown}.")
        self.tool_id = tool_id
        self.known = tuple(known)


class ToolNameTakenError(SandboxError):
    """Another tool has the name; ``tool_id`` is that tool's."""

    def __init__(self, name: str, tool_id: str) -> None:
        super().__init__(f"The tool {tool_id!r} has the name {name!r} already.")
        self.name = name
        self.tool_id = tool_id


class FixedToolError(SandboxError):
    """The tool of the setting ``tool_id`` cannot be deleted."""

    def __init__(self, tool_id: str) -> None:
        super().__init__(
            f"The tool {tool_id!r} is the double's own (the setting tool_id): it cannot be deleted."
        )
        self.tool_id = tool_id


class UnknownSessionError(SandboxError):
    """A SessionId that no instance of the tool has or had."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"There is no session instance {session_id!r}.")
        self.session_id = session_id


class TooManyInstancesError(SandboxError):
    """The largest number of session instances is alive; ``limit`` is that number."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"{limit} session instances are alive and the setting max_instances allows no more. "
            "Destroy one, wait for one to expire, or raise the setting."
        )
        self.limit = limit


class TooManyNotebooksError(SandboxError):
    """A session has as many Jupyter sessions as it may have; ``limit`` is that number."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} Jupyter sessions are open and no more are allowed: close one.")
        self.limit = limit


class InstanceBusyError(SandboxError):
    """The instance runs code and the ledger says that a second call is refused meanwhile."""

    def __init__(self, user_session_id: str) -> None:
        super().__init__(f"The instance of session {user_session_id!r} is running code.")
        self.user_session_id = user_session_id


class InstancePausedError(SandboxError):
    """The instance is paused; it runs nothing until it is resumed."""

    def __init__(self, user_session_id: str) -> None:
        super().__init__(f"The instance of session {user_session_id!r} is paused: resume it first.")
        self.user_session_id = user_session_id


class InstanceEndedError(SandboxError):
    """The session's instance has ended; ``reason`` says when and why."""

    def __init__(self, user_session_id: str, reason: str) -> None:
        super().__init__(f"The instance of session {user_session_id!r} has ended: {reason}.")
        self.user_session_id = user_session_id
        self.reason = reason


class KernelStartError(SandboxError):
    """A kernel process did not start or did not answer; ``reason`` says what was seen."""

    def __init__(self, language: str, reason: str) -> None:
        super().__init__(f"The {language} kernel did not start: {reason}")
        self.language = language
        self.reason = reason


class WorkbenchError(SandboxError):
    """A session's workbench, which serves its terminals and files, did not start or has ended."""

    def __init__(self, reason: str, *, lives: bool = False) -> None:
        super().__init__(
            f"The session's workbench did not answer: {reason}. It lives still."
            if lives
            else f"The session's workbench is gone: {reason}. What ran in its terminals is lost, "
            "files are kept; the next call starts another one."
        )
        self.reason = reason


class BrowserError(SandboxError):
    """A session's browser did not start or has ended; ``reason`` says what was seen."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The session's browser is gone: {reason}. The next call starts another.")
        self.reason = reason


class BrowserMissingError(SandboxError):
    """This machine lacks what a browser needs; ``remedy`` is the command that installs it."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what} is not installed. Install it: {remedy}")
        self.remedy = remedy


class TooManyBrowsersError(SandboxError):
    """The largest number of browsers runs; ``limit`` is that number."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"{limit} browsers run and the setting max_browsers allows no more. "
            "Destroy a session that has one, or raise the setting."
        )
        self.limit = limit


class PageError(SandboxError):
    """A page in a session's browser did not do what was asked; ``reason`` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The page in front did not do what was asked: {reason}.")
        self.reason = reason
