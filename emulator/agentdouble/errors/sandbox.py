"""Errors of sandbox sessions that cannot handle a request or be listened to."""

from __future__ import annotations

from collections.abc import Sequence

from agentdouble.errors.general import AgentDoubleError


class LiveError(AgentDoubleError):
    """The live output of a session cannot be followed as requested."""


class TooManyListenersError(LiveError):
    """Too many clients listen to ``source``; ``limit`` is the allowed number."""

    def __init__(self, limit: int, source: str = "the outputs of sessions") -> None:
        super().__init__(f"Too many listeners on {source} (limit {limit}); close some.")
        self.limit = limit


class SandboxError(AgentDoubleError):
    """The sandbox refuses a request; ``code`` and ``status`` are those of the answer."""

    code = "InternalError"
    status = 500

    def __init__(self, message: str, code: str | None = None, status: int | None = None) -> None:
        super().__init__(message)
        self.code = code or self.code
        self.status = status or self.status


class DirectoryError(SandboxError):
    """Code cannot run in a directory of the session."""

    code = "InvalidParameter"
    status = 400

    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(f"Code cannot run in the directory {directory!r}: {reason}.")
        self.directory = directory


class UnknownToolError(SandboxError):
    """No tool has this id; ``known`` are some of the existing ids."""

    code = "InvalidResource.NotFound"
    status = 404

    def __init__(self, tool_id: str, names: Sequence[str]) -> None:
        listed = ", ".join(repr(name) for name in names)
        super().__init__(f"There is no tool {tool_id!r}; this double has {listed}.")
        self.tool_id = tool_id
        self.known = tuple(names)


class UnknownSessionError(SandboxError):
    """No instance of the tool has, or ever had, this SessionId."""

    code = "InvalidResource.NotFound"
    status = 404

    def __init__(self, session_id: str) -> None:
        super().__init__(f"There is no session instance {session_id!r}.")
        self.session_id = session_id


class TooManyInstancesError(SandboxError):
    """Too many session instances are alive; ``limit`` is the allowed number.

    If the limit comes from this machine and not from a setting, ``resource`` is what is scarce.
    """

    code = "QuotaExceeded"
    status = 429

    def __init__(self, limit: int, resource: str | None = None) -> None:
        reason = "the setting max_instances allows no more"
        if resource is not None:
            reason = f"this machine has not enough {resource} for more"
        super().__init__(
            f"{limit} session instances are alive and {reason}. "
            "Destroy one, wait for one to expire, or raise the setting max_instances."
        )
        self.limit = limit
        self.resource = resource


class ResourceExhaustedError(SandboxError):
    """The machine lacks a resource that a session needs.

    ``resource`` is "open files", "processes", "memory" or "disk"; ``remedy`` says how to raise it.
    """

    code = "QuotaExceeded"
    status = 429

    def __init__(self, resource: str, evidence: str, remedy: str) -> None:
        super().__init__(
            f"Not enough {resource} for another session ({evidence}). "
            f"Destroy one, wait for one to expire, or {remedy}."
        )
        self.resource = resource
        self.remedy = remedy


class InstanceEndedError(SandboxError):
    """The session's instance has ended; ``reason`` says when and why."""

    code = "InvalidResource.NotFound"
    status = 404

    def __init__(self, user_session_id: str, reason: str) -> None:
        super().__init__(f"The instance of session {user_session_id!r} has ended: {reason}.")
        self.user_session_id = user_session_id
        self.reason = reason


class CodeNotBegunError(InstanceEndedError):
    """The instance ended by itself before the code of this call began."""


class SnapshotRefusedError(SandboxError):
    """A session cannot be snapshotted or resumed; ``reason`` says why.

    ``code`` is the reason for programs.
    """

    code = "InvalidSnapshot.NotPossible"
    status = 409

    def __init__(self, reason: str, code: str | None = None) -> None:
        super().__init__(f"The session's snapshot is refused: {reason}.", code)
        self.reason = reason


class KernelStartError(SandboxError):
    """A kernel process did not start or did not answer; ``reason`` says what was observed."""

    code = "ErrCreateSessionFail"
    status = 500

    def __init__(self, language: str, reason: str) -> None:
        super().__init__(f"The {language} kernel did not start: {reason}")
        self.language = language
        self.reason = reason


class WorkbenchError(SandboxError):
    """A session's workbench did not start or has ended; it serves terminals and files."""

    code = "InternalError.Workbench"
    status = 502

    def __init__(self, reason: str, *, lives: bool = False) -> None:
        super().__init__(
            f"The session's workbench did not answer: {reason}. It is still running."
            if lives
            else f"The session's workbench has ended: {reason}. Its terminals are lost, its "
            "files are kept, and the next call starts another workbench."
        )
        self.reason = reason


class BrowserError(SandboxError):
    """A session's browser did not start or has ended; ``reason`` says what was observed."""

    code = "InternalError.Browser"
    status = 502

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The session's browser has ended: {reason}. The next call starts another."
        )
        self.reason = reason


class PageError(SandboxError):
    """A page in a session's browser could not do an action; ``reason`` says why."""

    code = "InternalError.Browser"
    status = 502

    def __init__(self, reason: str) -> None:
        super().__init__(f"The front page could not do this: {reason}.")
        self.reason = reason
