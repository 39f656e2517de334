"""What any part may refuse: settings, unknowns, what is not there, addresses, state."""

from __future__ import annotations

from agentdouble.errors.base import AgentDoubleError


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

    code = "NotImplemented"
    status = 501

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
    """What is to outlive the process cannot be kept; ``where`` is the file or URL.

    ``status`` is what a request hears that needs it: 507 for want of room, otherwise 503.
    """

    code = "StateError"

    def __init__(self, message: str, *, where: str, status: int = 503) -> None:
        super().__init__(message)
        self.where = where
        self.status = status


class AnswerLostError(AgentDoubleError):
    """A server behind this one is not there, or breaks off; the message says what was seen.

    ``unreached`` where there was no connection, ``silent`` where nobody answered at all.
    """

    def __init__(self, reason: str, *, unreached: bool = False, silent: bool = False) -> None:
        super().__init__(reason)
        self.unreached = unreached
        self.silent = silent
