"""Every exception that doublecheck raises on purpose.

::

    DoubleCheckError
    ├── ArgumentError             an argument has a wrong type, or cannot be sent
    ├── TargetError               the options or the environment name no usable target
    │   └── ConfigurationError    a configuration file, or a value in it, cannot be used
    ├── CredentialsMissingError   a request must be signed, but the target has no key pair
    ├── MissingExtraError         a part of the harness needs a package that is not installed
    ├── UnreachableError          nothing answers at an address
    ├── WrongAddressError         the server at an address is not a platform
    │   └── AbsentSurfaceError    the server does not have a surface
    ├── NoAnswerError             a request was sent, but its answer broke off or never came
    ├── LostAnswersError          answers were lost on the way, in each of several attempts
    ├── AnswerError               an answer is not what its route promises
    │   └── RefusedError          an answer refuses: an HTTP error or an error envelope
    │       └── EndedCopyError    a copy of a session has ended, and its state with it
    ├── ResultError               a result is a failure: code raised, a command or a tool failed
    ├── CalibrationError          a profile cannot be written, or an unknown does not exist
    ├── NotADoubleError           only a double supports an operation
    ├── FaultError                the double does not accept a fault, or it did not fire
    ├── FailedCellError           a notebook's cell failed in the sandbox
    ├── UnexpectedHostError       with platform_mock, a request went to another host
    │   └── UnseenRequestError    with platform_mock, another library than httpx was used
    ├── FolderError               a folder cannot be written, or has other files
    ├── ChecksCrashedError        the process of the checks ended
    └── ReportError               a report cannot be read or written

    KeyboardInterrupt             of Python
    ├── InterruptedCalibrationError
    │                             a calibration was interrupted; it has the findings
    ├── InterruptedChecksError    contract checks were interrupted; it has the report
    ├── InterruptedRunError       code that ran in a sandbox was interrupted
    └── InterruptedTwinError      a twin was interrupted; it has the comparison

Messages are for people: what happened, where, and what to do. The attributes are for programs.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any

from agentdouble.errors.tracebacks import ShownShort


class DoubleCheckError(ShownShort, Exception):
    """The base of every exception that doublecheck raises on purpose."""


class ArgumentError(DoubleCheckError, TypeError):
    """An argument has a wrong type, or cannot be sent; no request was sent."""


class TargetError(DoubleCheckError):
    """The options or the environment name no usable target."""


class ConfigurationError(TargetError):
    """A configuration cannot be used. ``source`` is the file, option or variable with the error.

    ``key`` is the key of the wrong value, if there is one.
    """

    def __init__(self, message: str, *, source: str, key: str | None = None) -> None:
        super().__init__(message)
        self.source = source
        self.key = key


class CredentialsMissingError(DoubleCheckError):
    """A request must be signed, but the target has no key pair or no tool id."""


class MissingExtraError(DoubleCheckError):
    """A part needs a package that is not installed. ``command`` installs it."""

    def __init__(self, part: str, *, install: str) -> None:
        self.command = f"pip install '{install}'"
        super().__init__(f"{part} is not installed. Install it: {self.command}")


class UnreachableError(DoubleCheckError):
    """Nothing answers at an address. ``url`` is the requested URL."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"Nothing answers at {url} ({reason}). Is the platform running, and is the address "
            "correct? 'agentdouble serve' starts a double, and so does leaving out the address."
        )
        self.url = url


class WrongAddressError(DoubleCheckError):
    """The server at an address is not a platform. ``url`` is the requested URL."""

    def __init__(self, url: str, expected: str) -> None:
        super().__init__(
            f"{url} {expected}, so it is not a platform. Is the address correct? Redirects are "
            "not followed, because they would receive the keys."
        )
        self.url = url


class AbsentSurfaceError(WrongAddressError):
    """The server at ``url`` answers, but does not show a surface, whose name is ``surface``.

    ``answers`` holds the requests and the server's answers. ``offered`` says that the platform was
    declared to have the surface, so that its absence counts against it.
    """

    offered = False

    def __init__(self, url: str, surface: str, answers: Sequence[str]) -> None:
        DoubleCheckError.__init__(
            self,
            f"Nothing at {url} answers as {surface}: {'; '.join(answers).rstrip('.')}. If it is "
            "elsewhere, give its address; if it does not exist, remove it from what the target offers.",
        )
        self.url = url
        self.surface = surface
        self.answers = tuple(answers)


class NoAnswerError(DoubleCheckError):
    """A request was sent, but its answer broke off or never came. ``url`` is the requested URL."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"{url} accepted the request but did not finish its answer ({reason}). See the "
            "platform's log; if it is only slow, raise timeout_s."
        )
        self.url = url


class LostAnswersError(DoubleCheckError):
    """Answers of a platform were lost on the way, in each of several attempts."""

    def __init__(self, attempts: int, url: str, reason: str) -> None:
        self.attempts = attempts
        self.url = url
        self.reason = reason
        super().__init__(
            f"In each of {attempts} attempts an answer was lost on the way, the last one from "
            f"{url}: {reason}. Something between this machine and the platform loses answers."
        )


class AnswerError(DoubleCheckError):
    """An answer does not have its route's format. ``status`` and ``body`` are the answer's."""

    def __init__(self, message: str, *, status: int, body: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.body = body


class RefusedError(AnswerError):
    """The platform refuses. ``code`` is its error code, if there is one."""

    def __init__(self, message: str, *, status: int, body: str = "", code: str = "") -> None:
        super().__init__(message, status=status, body=body)
        self.code = code


class EndedCopyError(RefusedError):
    """A copy of a session has ended: its validity has passed, or it was destroyed.

    It has no other instance, unlike a session of a user: a new one would lack the copied state.
    """

    def __init__(self, session_id: str, error: RefusedError) -> None:
        message = (
            f"The copy {session_id} of a session has ended, and its state with it. Make another "
            f"with platform.sandbox_from(snapshot, ttl_s=...). {error}"
        )
        super().__init__(message, status=error.status, body=error.body, code=error.code)


class ResultError(DoubleCheckError):
    """A result is a failure: code raised, a command, a tool or an agent failed.

    ``result`` is that result. ``ename`` and ``evalue`` are the name and the message of its error,
    ``traceback`` is the traceback; each is "" if the result has none.
    """

    def __init__(
        self, summary: str, *, result: Any, ename: str = "", evalue: str = "", traceback: str = ""
    ) -> None:
        error = ": ".join(text for text in (ename, evalue) if text)
        end = f":\n{traceback}" if traceback else "."
        super().__init__((f"{summary} {error}" if error else summary).rstrip(".:") + end)
        self.result = result
        self.ename = ename
        self.evalue = evalue
        self.traceback = traceback


class CalibrationError(DoubleCheckError):
    """A profile cannot be written, or a requested unknown does not exist."""


class NotADoubleError(DoubleCheckError):
    """Only a double supports this operation, but the platform is live."""

    def __init__(
        self, feature: str, url: str, *, advice: str = "connect() without a URL starts a double."
    ) -> None:
        super().__init__(
            f"{feature} exists only on a double, but {url} is a live platform. {advice}"
        )
        self.url = url


class FaultError(DoubleCheckError):
    """The double does not accept a fault, or a fault did not fire in time."""


class FailedCellError(DoubleCheckError):
    """A notebook's cell failed in the sandbox. ``lines`` are the traceback from there."""

    def __init__(self, message: str, lines: Sequence[str]) -> None:
        super().__init__(message)
        self.lines = tuple(lines)

    def _render_traceback_(self) -> list[str]:
        """Show the sandbox's traceback, without frames of this process."""
        return list(self.lines)


class UnexpectedHostError(DoubleCheckError):
    """With platform_mock, a request went to another host than the cloud's: ``host``."""

    def __init__(self, host: str, hosts: Sequence[str]) -> None:
        super().__init__(
            f"The code under test sent a request to {host}, which platform_mock blocked: it "
            f"only answers for {', '.join(hosts)}. If the platform is there too, have "
            f"platform_config return PlatformConfig(cloud_hosts=[..., {host!r}]). If it is "
            "another service, mock it: "
            f"platform_mock.router.route(host={host!r}).respond(json=...)."
        )
        self.host = host


class UnseenRequestError(UnexpectedHostError):
    """With platform_mock, another library than httpx was used. ``library`` names it, if known."""

    def __init__(self, host: str, hosts: Sequence[str], library: str | None) -> None:
        super().__init__(host, hosts)
        sender = library or "a library other than httpx"
        advice = (
            f"The code under test sent a request to {host} with {sender}, which was blocked: "
            "platform_mock supports httpx only. Use the fixture platform_env, whose variables point "
            "every library at the double."
        )
        self.args = (advice,)
        self.library = library


class FolderError(DoubleCheckError):
    """A folder cannot be written, or has other files."""


class ChecksCrashedError(DoubleCheckError):
    """The process of the checks ended. ``lines`` are its last printed lines."""

    def __init__(self, code: int, lines: Sequence[str]) -> None:
        printed = "".join(f"\n  {line}" for line in lines) or " nothing."
        super().__init__(
            f"The process that ran the checks ended with {_exit(code)}, without a report. "
            f"Its last output:{printed}"
        )
        self.code = code
        self.lines = tuple(lines)


def _exit(code: int) -> str:
    """Describe in words how a process ended."""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"


class ReportError(DoubleCheckError):
    """A report cannot be read, or cannot be written to its path."""


class InterruptedRunError(ShownShort, KeyboardInterrupt):
    """Code in a sandbox was interrupted. ``session_id`` is the caller's session.

    It is a KeyboardInterrupt, so ``except Exception`` does not catch it.
    """

    def __init__(self, session_id: str, *, double: bool) -> None:
        outcome = (
            "in the sandbox too. The session keeps its state, unless the code ignores the interrupt "
            "for 2 seconds"
        )
        if not double:
            outcome = "only here: a live platform may keep running it until its timeout"
        super().__init__(f"The code of the session {session_id!r} was interrupted, {outcome}.")
        self.session_id = session_id


# The next three carry values whose modules import this one, so their classes cannot be named here.


class InterruptedChecksError(ShownShort, KeyboardInterrupt):
    """Checks were interrupted. ``report`` is the Report of the checks so far.

    It is a KeyboardInterrupt, so ``except Exception`` does not catch it.
    """

    def __init__(self, report: Any) -> None:
        super().__init__(report.cut_short)
        self.report = report


class InterruptedTwinError(ShownShort, KeyboardInterrupt):
    """A twin was interrupted. ``comparison`` is the Comparison of the parts so far.

    It is a KeyboardInterrupt, so ``except Exception`` does not catch it.
    """

    def __init__(self, comparison: Any, parts: int) -> None:
        super().__init__(f"Interrupted: {len(comparison.parts)} of {parts} parts were compared.")
        self.comparison = comparison


class InterruptedCalibrationError(ShownShort, KeyboardInterrupt):
    """A calibration was interrupted. ``findings`` are the Findings so far.

    It is a KeyboardInterrupt, so ``except Exception`` does not catch it.
    """

    def __init__(self, findings: Any, unknowns: int) -> None:
        super().__init__(f"Interrupted: {len(findings)} of {unknowns} unknowns were probed.")
        self.findings = findings
