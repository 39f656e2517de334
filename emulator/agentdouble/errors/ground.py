"""Errors that any part may raise: settings, unknowns, missing parts, addresses, state."""

from __future__ import annotations

from collections.abc import Sequence

from agentdouble.errors.base import AgentDoubleError


class SettingsError(AgentDoubleError):
    """A setting is unknown or has a wrong value; ``key`` is its name, ``source`` its place."""

    def __init__(self, message: str, *, key: str, source: str) -> None:
        super().__init__(message)
        self.key = key
        self.source = source


class DeclarationError(SettingsError):
    """A runtime cannot be as its table says; ``reason`` says why, ``name`` is the runtime's."""

    def __init__(self, name: object, key: str, reason: str) -> None:
        self.name = name if isinstance(name, str) else ""
        self.reason = reason
        whose = f" (of the runtime {self.name[:100]!r})" if self.name else ""
        end = "" if reason.endswith("?") else "."
        message = f"The setting {key}{whose} is wrong: {reason}{end}"
        super().__init__(message, key=key, source="the settings")


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

    def __init__(self, what: str, *, extra: str) -> None:
        super().__init__(
            f"{what} needs the extra {extra!r}. Install it: pip install 'agentdouble[{extra}]'"
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

    def __init__(self, what: str, instead: str = "") -> None:
        lacking = "is part of the platform, but this version of agentdouble has not built it yet."
        super().__init__(f"{what} {lacking} {instead}".rstrip())
        self.what = what


class FaultError(AgentDoubleError):
    """A fault cannot be armed as requested, or does not exist; ``field`` is the wrong field."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class PartError(AgentDoubleError, ValueError):
    """A double has no part of a name that a reset should keep; ``name`` is that name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"A reset cannot keep {name[:80]!r}; it can keep {', '.join(known)}.")
        self.name = name


class UnknownSnapshotError(AgentDoubleError):
    """A double has no snapshot of an id, which is ``id``."""

    def __init__(self, id_: str, most: int) -> None:
        super().__init__(
            f"This double has no snapshot {id_[:80]!r}. It has the last {most} that it was asked for, "
            "until it stops."
        )
        self.id = id_


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
