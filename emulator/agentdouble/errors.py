"""Every exception that agentdouble raises on purpose.

::

    AgentDoubleError
    ├── SettingsError             a setting that is unknown or has a wrong value
    ├── LedgerError               an unknown, or an alternative of one, that does not exist
    ├── MissingExtraError         a part of agentdouble whose extra is not installed
    ├── NotBuiltError             something the platform has and the double does not have yet
    ├── AddressInUseError         a port that another program listens on
    ├── ApplicationLoadError      an application that cannot be imported or served
    ├── DecorationError           a function that breaks the decorator contract (also a TypeError)
    ├── ActionError               a control-plane action that is refused, with the platform's code
    ├── SignatureError            a control-plane request whose signature does not verify
    ├── EnvelopeError             an answer that is not the envelope of section 2.8
    ├── PlatformError             an answer that is the platform's error envelope
    ├── RunCodeError              run_code lacks what it needs
    │   ├── ToolIdMissingError
    │   ├── CredentialsMissingError
    │   └── PlatformUnreachableError
    └── SandboxError              a session instance cannot do what was asked
        ├── UnknownLanguageError
        ├── TooManyInstancesError
        ├── InstanceBusyError
        ├── InstancePausedError
        ├── InstanceEndedError
        └── KernelStartError

Messages are for people: what happened, where, what to do. What a program needs is in
the attributes.
"""

from __future__ import annotations

from collections.abc import Sequence


class AgentDoubleError(Exception):
    """The base of every exception that agentdouble raises on purpose."""


class SettingsError(AgentDoubleError):
    """A setting is unknown or has a wrong value; ``key`` names it, ``source`` says where it stood."""

    def __init__(self, message: str, *, key: str, source: str) -> None:
        super().__init__(message)
        self.key = key
        self.source = source


class LedgerError(AgentDoubleError):
    """An unknown, or an alternative of one, does not exist or is not built; ``unknown`` is its id."""

    def __init__(self, message: str, *, unknown: str) -> None:
        super().__init__(message)
        self.unknown = unknown


class MissingExtraError(AgentDoubleError):
    """A part needs an extra that is not installed; ``extra`` names it."""

    def __init__(self, what: str, *, extra: str) -> None:
        super().__init__(
            f"{what} needs the extra {extra!r}. Install it: pip install 'agentdouble[{extra}]'"
        )
        self.extra = extra


class NotBuiltError(AgentDoubleError):
    """The platform has this and the double does not have it yet; ``what`` names it."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} is part of the platform, but this version of agentdouble has not built it yet."
        )
        self.what = what


class AddressInUseError(AgentDoubleError):
    """Another program listens on ``host:port``."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(
            f"Port {port} on {host} is in use. Choose another one, for example --port {port + 1}, "
            "or --port 0 for any that is free."
        )
        self.host = host
        self.port = port


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


class SandboxError(AgentDoubleError):
    """A session instance cannot do what was asked."""


class UnknownLanguageError(SandboxError):
    """A language that the sandbox does not run; ``known`` are those it does."""

    def __init__(self, language: str, known: Sequence[str]) -> None:
        super().__init__(f"The language {language!r} is not known. Known are: {', '.join(known)}.")
        self.language = language
        self.known = tuple(known)


class TooManyInstancesError(SandboxError):
    """The largest number of session instances is alive; ``limit`` is that number."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"{limit} session instances are alive and the setting max_instances allows no more. "
            "Destroy one, wait for one to expire, or raise the setting."
        )
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
