"""Run a cell on a platform with live output."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from IPython.display import clear_output, publish_display_data

from doublecheck.core.markup import box
from doublecheck.errors import FailedCellError
from doublecheck.notebook.display.outputs import safe, traceback
from doublecheck.notebook.magics.options import BASH, refuse, write_line
from doublecheck.values.executions import BashResult, CodeResult

if TYPE_CHECKING:
    from doublecheck.client._sync.platform import Platform
    from doublecheck.client._sync.sandbox import Sandbox
    from doublecheck.notebook.magics.options import CellOptions
    from doublecheck.values.executions import LiveOutput, OnOutput


class OutputDisplay:
    """Shows outputs as they arrive. Only code of the same ``origin`` can update a display."""

    def __init__(self, origin: str) -> None:
        self._origin = origin

    def __call__(self, output: LiveOutput) -> None:
        """Show a message of a kernel, except for errors, which the caller raises."""
        show = getattr(self, f"_{output.msg_type}", None)
        if show is not None:
            show(output.content)

    def _stream(self, content: Mapping[str, Any]) -> None:
        stream = sys.stderr if content.get("name") == "stderr" else sys.stdout
        stream.write(str(content.get("text") or ""))

    def _display_data(self, content: Mapping[str, Any], update: bool = False) -> None:
        data, metadata = _bundle(content)
        publish_display_data(data, metadata, transient=self._transient(content), update=update)

    def _update_display_data(self, content: Mapping[str, Any]) -> None:
        self._display_data(content, update=True)

    def _execute_result(self, content: Mapping[str, Any]) -> None:
        # so that it becomes the cell's Out, stays in order, and %%capture captures it
        sys.displayhook(RemoteValue(*_bundle(content)))

    def _clear_output(self, content: Mapping[str, Any]) -> None:
        clear_output(wait=bool(content.get("wait")))

    def _transient(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return a display's id, with a prefix that avoids clashes with the notebook's displays."""
        id_ = (content.get("transient") or {}).get("display_id")
        return {} if id_ is None else {"display_id": f"sandbox/{self._origin}/{id_}"}


class RemoteValue:
    """The representation of a cell's last value; the value itself stays in the kernel."""

    def __init__(self, data: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
        self._data = dict(data)
        self._metadata = dict(metadata)

    def __repr__(self) -> str:
        return str(self._data.get("text/plain", ""))

    def _repr_mimebundle_(self, **_kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Show the value as its kernel did."""
        return self._data, self._metadata


def _bundle(content: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return safe(content.get("data") or {}, content.get("metadata"))


def fail(failure: FailedCellError | None, *, raises: bool) -> None:
    """Raise a failure, or show it if it must not end the cell. Do nothing for None."""
    if failure is None:
        return
    if raises:
        raise failure
    text = "\n".join(failure.lines)
    html = str(box(traceback(text)))
    publish_display_data({"text/plain": text, "text/html": html})


def failure_of(result: CodeResult) -> FailedCellError | None:
    """Return the error that ended the code, or None."""
    if result.success:
        return None
    error = result.error
    if error is None:
        return FailedCellError(result.message, [result.message])
    lines = error.traceback.splitlines() or [f"{error.ename}: {error.evalue}"]
    if result.status != "error":  # the code was interrupted, and the message says why
        lines = [*lines, result.message]
    return FailedCellError(f"{error.ename}: {error.evalue}", lines)


def bad_exit_of(result: BashResult, timeout_s: int | None) -> FailedCellError | None:
    """Return the failure of a command that has failed or is still running, or None."""
    if result.exit_code == 0:
        return None
    message = f"The command ended with exit code {result.exit_code}."
    if result.exit_code is None:
        waited = f"its {timeout_s} s" if timeout_s else "its time"
        message = f"The command is still running after {waited}; --timeout waits longer."
    return FailedCellError(message, [message])


@dataclass(frozen=True)
class Cell:
    """The code of a cell and the options on its first line."""

    code: str
    options: CellOptions

    def sandbox(self, platform: Platform) -> Sandbox:
        """Return the session that the cell runs in."""
        options = self.options
        return platform.sandbox(options.session, user_id=options.user, agent=options.agent)

    def run(self, platform: Platform, on_output: OnOutput | None = None) -> CodeResult | BashResult:
        """Run the code and return its result."""
        options, sandbox = self.options, self.sandbox(platform)
        if options.language != BASH:
            return sandbox.run(
                self.code, options.language, timeout_s=options.timeout_s, on_output=on_output
            )
        result = sandbox.exec_bash(self.code, timeout_s=options.timeout_s)
        sys.stdout.write(result.stdout)
        sys.stderr.write(result.stderr)
        return result


def show(cell: Cell, platform: Platform, variables: MutableMapping[str, object]) -> None:
    """Run a cell, show its output and store its result. Raise FailedCellError if it failed."""
    options = cell.options
    if options.given:
        given = assignments(options.given, options.language, variables)
        _tell_notice(replace(cell, code=given).run(platform))
    result = cell.run(platform, OutputDisplay(cell.sandbox(platform).user_session_id))
    _tell_notice(result)
    if options.out is not None:
        variables[options.out] = result
    if isinstance(result, CodeResult):
        failure = failure_of(result)
    else:
        failure = bad_exit_of(result, options.timeout_s)
    fail(failure, raises=options.raises)


def _tell_notice(result: CodeResult | BashResult) -> None:
    """Print what the platform says about the session's context: that it is a new one."""
    if isinstance(result, CodeResult) and result.notice:
        write_line(result.notice)


def assignments(names: Sequence[str], language: str, variables: Mapping[str, object]) -> str:
    """Return code that gives a session variables of the notebook. Raise UsageError.

    Their values are literals of Python, or what JSON has for the other languages.
    """
    return "\n".join(_assignment(name, language, variables) for name in names)


def _assignment(name: str, language: str, variables: Mapping[str, object]) -> str:
    if language == BASH:
        refuse("--in gives variables to Python, JavaScript and TypeScript, and not to bash.")
    if name not in variables:
        refuse(f"--in {name}: the notebook has no variable of that name.")
    value = variables[name]
    is_python = language == "python3"
    try:
        text = repr(value) if is_python else json.dumps(value, allow_nan=False)
        if not is_python:
            return f"globalThis.{name} = {text}"
        if ast.literal_eval(text) == value:
            return f"{name} = {text}"
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        pass
    kind = type(value).__name__
    form = "a literal of Python" if is_python else "JSON"
    return refuse(
        f"--in {name}: this {kind} is not {form}. Pass a part of it, such as a list or a dict, or "
        "a file: platform.sandbox().upload(path, content)."
    )
