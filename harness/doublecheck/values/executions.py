"""Results that can fail, those of code and commands, and their outputs while they run."""

from __future__ import annotations

import base64
import contextlib
import re
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from doublecheck.core.notebook_repr import Secret, Shown, short
from doublecheck.errors import ResultError

if TYPE_CHECKING:
    from typing_extensions import Self

R = TypeVar("R", bound="CanFail")

# what a message says at its end about the context of the session
_NOTICE = re.compile(r"\bThis is a new (?:instance of the session|kernel), .*", re.DOTALL)
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

Ran = TypeVar("Ran", "CodeResult", "BashResult")

_SAYS = {
    "stream": ("name", "text"),
    "display_data": ("data", "metadata"),
    "execute_result": ("data", "metadata", "execution_count"),
    "error": ("ename", "evalue", "traceback"),
}
_TOLD = ("name", "text", "ename", "evalue", "wait")


class CanFail:
    """A result that can be a failure."""

    __slots__ = ()

    def raise_for_error(self) -> Self:
        """Return this result. Raise ResultError if it is a failure."""
        error = self.failure()
        if error is not None:
            raise error
        return self

    def failure(self) -> ResultError | None:
        """Return the error that ``raise_for_error()`` raises, or None if this is not a failure."""
        raise NotImplementedError


def checked(result: R, check: bool) -> R:
    """Return a result. With ``check``, raise ResultError if it is a failure."""
    return result.raise_for_error() if check else result


def plain(text: str) -> str:
    """Return a text without the ANSI codes for colours."""
    return _ANSI.sub("", text)


@dataclass(frozen=True, repr=False)
class Output(Shown, drawn_by="notebook.display.outputs.output"):
    """One output of an execution, with the nine fields of section 2.7."""

    output_type: str
    name: str | None = None
    text: str | None = None
    data: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    execution_count: int | None = None
    ename: str | None = None
    evalue: str | None = None
    traceback: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        parts = [part for part in (self.output_type, self.name, self.ename) if part]
        parts += [short(text) for text in (self.text, self.evalue) if text is not None]
        return f"<Output {' '.join([*parts, ', '.join(self.data or ())]).strip()}>"


@dataclass(frozen=True)
class CodeError(Shown, drawn_by="notebook.display.outputs.error"):
    """The error that ended an execution. ``traceback`` may contain ANSI colours."""

    ename: str
    evalue: str
    traceback: str = field(repr=False)


@dataclass(frozen=True, repr=False)
class CodeResult(Shown, CanFail, drawn_by="notebook.display.outputs.code_result"):
    """The result of running code. ``session_id`` is the instance's SessionId (``s-...``).

    ``raise_for_error()`` raises ResultError if the code raised or did not end in time.
    """

    success: bool
    status: str
    message: str
    outputs: tuple[Output, ...]
    execution_count: int | None
    session_id: str
    code: str

    @property
    def notice(self) -> str:
        """Why the code had none of the context before it: the session is new. Otherwise empty."""
        found = _NOTICE.search(self.message)
        return found[0] if found else ""

    @property
    def stdout(self) -> str:
        """The standard output of the code."""
        return self._stream("stdout")

    @property
    def stderr(self) -> str:
        """The standard error of the code."""
        return self._stream("stderr")

    @property
    def text(self) -> str | None:
        """The text of the last value that the code returned or displayed."""
        texts = [output.data.get("text/plain") for output in self.outputs if output.data]
        return texts[-1] if texts else None

    @property
    def error(self) -> CodeError | None:
        """The error that ended the execution, if one did."""
        for output in reversed(self.outputs):
            if output.output_type == "error":
                traceback = "\n".join(output.traceback or ())
                return CodeError(output.ename or "", output.evalue or "", traceback)
        return None

    def failure(self) -> ResultError | None:
        if self.error is not None:
            ename, evalue = self.error.ename, self.error.evalue
            traceback = plain(self.error.traceback)
            return ResultError(
                "The code raised", result=self, ename=ename, evalue=evalue, traceback=traceback
            )
        if self.success:
            return None
        return ResultError("The code failed:", result=self, ename=self.status, evalue=self.message)

    @property
    def images(self) -> tuple[bytes, ...]:
        """The images that the code displayed, as the bytes of their files."""
        return tuple(image for output in self.outputs for _, image in images_of(output))

    def _stream(self, name: str) -> str:
        return "".join(output.text or "" for output in self.outputs if output.name == name)

    def __repr__(self) -> str:
        parts = [self.status, f"[{self.execution_count}]"]
        if self.stdout:
            parts.append(f"stdout={short(self.stdout)}")
        if self.text is not None:
            parts.append(f"text={short(self.text)}")
        if self.images:
            parts.append(f"images={len(self.images)}")
        if self.error is not None:
            parts.append(f"error={short(f'{self.error.ename}: {self.error.evalue}')}")
        return f"<CodeResult {' '.join(parts)}>"


@dataclass(frozen=True, repr=False)
class BashResult(Shown, CanFail, drawn_by="notebook.display.outputs.bash_result"):
    """The result of a command. ``exit_code`` is None if it still runs after its timeout.

    ``raise_for_error()`` raises ResultError unless the exit code is 0. ``session_id`` is the
    instance's SessionId (``s-...``).
    """

    status: str
    exit_code: int | None
    stdout: str
    stderr: str
    session_id: str
    command: str

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The standard output and error as outputs of code."""
        written = (("stdout", self.stdout), ("stderr", self.stderr))
        return tuple(Output("stream", name=name, text=text) for name, text in written if text)

    def failure(self) -> ResultError | None:
        if self.exit_code == 0:
            return None
        ended = self.status if self.exit_code is None else f"exit code {self.exit_code}"
        message = self.stderr.strip()
        return ResultError("The command failed:", result=self, ename=ended, evalue=message)

    def __repr__(self) -> str:
        parts = [self.status if self.exit_code is None else f"exit {self.exit_code}"]
        parts += [f"stdout={short(self.stdout)}"] * bool(self.stdout)
        parts += [f"stderr={short(self.stderr)}"] * bool(self.stderr)
        return f"<BashResult {' '.join(parts)}>"


@dataclass(frozen=True)
class BrowserInfo(Shown, drawn_by="notebook.display.outputs.browser_info"):
    """The properties of a browser. ``width`` and ``height`` of its pages are in pixels.

    ``cdp_url`` is the address of its DevTools protocol; a process that knows it can control the
    browser.
    """

    user_agent: str
    cdp_url: Secret
    width: int
    height: int


@dataclass(frozen=True, repr=False)
class LiveOutput:
    """A message of a kernel's IOPub channel, as in Jupyter's messaging protocol.

    ``msg_type`` is ``stream``, ``display_data``, ``update_display_data``, ``execute_result``,
    ``clear_output`` or ``error``.
    """

    msg_type: str
    content: Mapping[str, Any]

    def __repr__(self) -> str:
        fields = [f"{n}={reprlib.repr(self.content[n])}" for n in _TOLD if n in self.content]
        return (
            f"<LiveOutput {' '.join([self.msg_type, *fields, *(self.content.get('data') or ())])}>"
        )


@dataclass(frozen=True)
class Completion:
    """Completions of code for the characters from ``start`` to ``end``."""

    matches: tuple[str, ...]
    start: int
    end: int


OnOutput: TypeAlias = Callable[[LiveOutput], None]


def emit_outputs(result: Ran, on_output: OnOutput) -> Ran:
    """Pass the outputs of a result to ``on_output`` and return the result."""
    for output in result.outputs:
        content = {name: getattr(output, name) for name in _SAYS.get(output.output_type, ())}
        if "traceback" in content:
            content["traceback"] = list(content["traceback"] or ())
        on_output(LiveOutput(output.output_type, content))
    return result


def images_of(output: Output) -> tuple[tuple[str, bytes], ...]:
    """Return the images of an output as MIME types and bytes."""
    images = []
    for mime_type, content in (output.data or {}).items():
        if mime_type == "image/svg+xml":
            images.append((mime_type, str(content).encode()))
        elif mime_type.startswith("image/"):
            with contextlib.suppress(ValueError):  # binascii.Error is a ValueError
                images.append((mime_type, base64.b64decode(_unbroken(content), validate=True)))
    return tuple(images)


def _unbroken(content: Any) -> str:
    """Join base64 data that has line ends or is a list of lines."""
    lines = content if isinstance(content, (list, tuple)) else [content]
    return "".join("".join(map(str, lines)).split())


@dataclass(frozen=True, repr=False)
class SessionSnapshot:
    """A saved sandbox session. ``platform.sandbox_from(snapshot)`` makes a copy of it.

    ``session_id`` is the SessionId (``s-...``) of the saved session. ``created_at`` and ``reason``
    come from the platform: why the snapshot was taken, such as "Expired", or why it cannot be
    resumed. ``left_out`` names the parts of the session that a double's snapshot does not contain,
    for example "2 threads, 1 child process".
    """

    id: str
    status: str
    session_id: str
    user_session_id: str
    created_at: str
    reason: str = ""
    left_out: str = ""

    def __repr__(self) -> str:
        reason = f", {self.reason}" if self.reason else ""
        return f"<SessionSnapshot {self.id} {self.status} of {self.session_id}{reason}>"
