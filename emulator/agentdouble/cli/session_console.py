"""The console of ``agentdouble session attach``: cells that are typed or piped, and their outputs."""

from __future__ import annotations

import ast
import codeop
import contextlib
import json
import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import typer

from agentdouble.cli import connections
from agentdouble.core import terminal
from agentdouble.errors import PlatformError

if TYPE_CHECKING:
    from agentdouble.cli.control import ControlPlaneClient


_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_RAN = re.compile(r"Z ran execution (\d+): ")
_PYTHON = frozenset(("python", "python3"))


def run_console(
    name: str, tool_id: str | None, language: str, timeout_s: int, url: str | None
) -> int:
    """Read code, run it in the session and print the results; return the exit code.

    On a terminal the function reads cell by cell, until Ctrl-D. Input from a pipe is one cell, and
    the exit code is 1 if it failed.
    """
    plane = connections.connect(url)
    kernel = _Kernel(plane, plane.session(name, tool_id), language, timeout_s)
    if not sys.stdin.isatty():
        return 0 if kernel.run(sys.stdin.read()) else 1
    _interact(kernel)
    return 0


class _Kernel:
    """The kernel of one session, which runs cells and prints their outputs."""

    def __init__(
        self, plane: ControlPlaneClient, session: Mapping[str, Any], language: str, timeout_s: int
    ) -> None:
        self.language = language
        self._plane = plane
        self._timeout_s = timeout_s
        self._ids = {key: session[key] for key in ("ToolId", "SessionId")}
        self.next_count = self._last_count() + 1

    def run(self, code: str) -> bool:
        """Run a cell and return whether it succeeded; raise PlatformError."""
        if not code.strip():
            return True
        payload = {"code": code, "kernel_name": self.language, "timeout": self._timeout_s}
        result = self._plane.call(
            "InvokeTool",
            **self._ids,
            OperationType="RunCode",
            OperationPayload=json.dumps(payload),
        )
        inner = json.loads(result["Result"])
        self.next_count = inner["data"]["execution_count"] + 1
        for output in inner["data"]["outputs"]:
            _show(output)
        if inner["data"]["status"] == "timeout":
            typer.echo(inner["message"], err=True)
        return bool(inner["data"]["status"] == "ok")

    def _last_count(self) -> int:
        """Return the number of the last execution, from the session's log."""
        logs = self._plane.call("GetSessionLogs", **self._ids, Limit=1000)["Logs"]
        ran = _RAN.findall(logs)
        return int(ran[-1]) if ran else 0


def _interact(kernel: _Kernel) -> None:
    with contextlib.suppress(ImportError):  # line editing and history, if available
        import readline  # noqa: F401 (optional: readline)
    while True:
        try:
            code = _read(kernel)
        except EOFError:
            typer.echo()
            return
        except KeyboardInterrupt:
            typer.echo("\nKeyboardInterrupt")
            continue
        _run(kernel, code)


def _run(kernel: _Kernel, code: str) -> None:
    """Run a cell; Ctrl-C interrupts it, and the end of the session ends the console."""
    try:
        kernel.run(code)
    except KeyboardInterrupt:  # Ctrl-C closes the connection, which interrupts the code
        kernel.next_count += 1
        typer.echo("\nKeyboardInterrupt")
    except PlatformError as error:
        if error.status == 404:
            raise
        typer.echo(error.message, err=True)


def _read(kernel: _Kernel) -> str:
    """Read a cell; an incomplete cell continues on the next line."""
    prompt = f"In [{kernel.next_count}]: "
    lines = [input(prompt)]
    is_complete = _completeness(kernel.language)
    while not is_complete("\n".join(lines)):
        lines.append(input("...: ".rjust(len(prompt))))
    return "\n".join(lines)


def _completeness(language: str) -> Callable[[str], bool]:
    """Return a function that says whether code is complete; outside Python each line is."""
    if language.lower() not in _PYTHON:
        return lambda _code: True
    compiler = codeop.CommandCompiler()
    compiler.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    def complete(code: str) -> bool:
        try:
            return compiler(code, "<cell>", "single") is not None
        # the kernel reports the error, or accepts the code
        except (SyntaxError, ValueError, OverflowError):
            return True

    return complete


def _show(output: Mapping[str, Any]) -> None:
    kind = output["output_type"]
    if kind == "stream":
        typer.echo(output["text"], nl=False, err=output["name"] == "stderr")
    elif kind == "error":
        text = "\n".join(output["traceback"] or [f"{output['ename']}: {output['evalue']}"])
        styled = sys.stderr.isatty() and not terminal.is_plain()
        typer.echo(text if styled else _ANSI.sub("", text), err=True)
    elif kind == "execute_result":
        typer.echo(f"Out[{output['execution_count']}]: {_text(output['data'])}")
    else:
        typer.echo(_text(output["data"]))


def _text(data: Mapping[str, Any] | None) -> str:
    """Return the text of an output, and the names of its data that is not text."""
    others = [kind for kind in data or {} if not kind.startswith("text/")]
    text = str((data or {}).get("text/plain", ""))
    return f"{text} ({', '.join(others)})" if others else text
