"""``agentdouble session``, ``clock`` and ``nodes``: living sessions, a console on one, time, nodes."""

from __future__ import annotations

import ast
import codeop
import contextlib
import datetime as dt
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentdouble.cli import env
from agentdouble.cli.options import Json, Url, command_group, formatted, print_table
from agentdouble.errors import AgentDoubleError, PlatformError

if TYPE_CHECKING:
    from agentdouble.cli.control import ControlPlane

Session = Annotated[str, typer.Argument(help="SessionId (s-...) or UserSessionId.")]
Tool = Annotated[str | None, typer.Option(help="Id of the tool (all tools).")]

_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble session delete s-0123456789abcdef0123

  agentdouble session attach my_agent_ann_s1

  echo 'print(x)' | agentdouble session attach s-0123456789abcdef0123

[bold]Keys[/bold]  Ctrl-C interrupts the code, Ctrl-D leaves; the session goes on.
""")

session_app = command_group("List, end and use the sessions of a running double.", _EXAMPLES)


@session_app.command("list", epilog=_EXAMPLES)
def list_sessions(tool: Tool = None, url: Url = None, as_json: Json = False) -> None:
    """List the living sessions."""
    sessions = env.connect(url).sessions(tool)
    columns = ("SessionId", "UserSessionId", "ToolId", "Status", "ExpireAt")
    print_table(columns, sessions, sessions, as_json=as_json)


@session_app.command(epilog=_EXAMPLES)
def delete(session: Session, tool: Tool = None, url: Url = None, as_json: Json = False) -> None:
    """End a session now."""
    plane = env.connect(url)
    living = plane.session(session, tool)
    ids = {key: living[key] for key in ("ToolId", "SessionId")}
    deleted = plane.call("DeleteSession", **ids)
    typer.echo(json.dumps(deleted) if as_json else f"{deleted['SessionId']} is deleted.")


@session_app.command(epilog=_EXAMPLES)
def attach(
    session: Session,
    tool: Tool = None,
    language: Annotated[str, typer.Option(help="The language of the code.")] = "python3",
    timeout: Annotated[int, typer.Option(help="Longest run of a cell, in seconds.")] = 300,
    url: Url = None,
) -> None:
    """Run code in a living session's kernel, typed or from a pipe."""
    raise typer.Exit(run_console(session, tool, language, timeout, url))


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
    plane = env.connect(url)
    kernel = _Kernel(plane, plane.session(name, tool_id), language, timeout_s)
    if not sys.stdin.isatty():
        return 0 if kernel.run(sys.stdin.read()) else 1
    _interact(kernel)
    return 0


class _Kernel:
    """The kernel of one session, which runs cells and prints their outputs."""

    def __init__(
        self, plane: ControlPlane, session: Mapping[str, Any], language: str, timeout_s: int
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
        except (SyntaxError, ValueError, OverflowError):  # the kernel reports it, or accepts it
            return True

    return complete


def _show(output: Mapping[str, Any]) -> None:
    kind = output["output_type"]
    if kind == "stream":
        typer.echo(output["text"], nl=False, err=output["name"] == "stderr")
    elif kind == "error":
        text = "\n".join(output["traceback"] or [f"{output['ename']}: {output['evalue']}"])
        typer.echo(text if sys.stderr.isatty() else _ANSI.sub("", text), err=True)
    elif kind == "execute_result":
        typer.echo(f"Out[{output['execution_count']}]: {_text(output['data'])}")
    else:
        typer.echo(_text(output["data"]))


def _text(data: Mapping[str, Any] | None) -> str:
    """Return the text of an output, and the names of its data that is not text."""
    others = [kind for kind in data or {} if not kind.startswith("text/")]
    text = str((data or {}).get("text/plain", ""))
    return f"{text} ({', '.join(others)})" if others else text


_CLOCK = "/_emulator/clock"
_UNITS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}

_CLOCK_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble clock show

  agentdouble clock advance 29m58s             ends the sessions that are due

  agentdouble clock freeze
""")

clock_app = command_group("Show, move and stop the time of a running double.", _CLOCK_EXAMPLES)


@clock_app.command(epilog=_CLOCK_EXAMPLES)
def show(url: Url = None, as_json: Json = False) -> None:
    """Show the double's time."""
    _print(env.connect(url).admin(_CLOCK, {}).json(), as_json=as_json)


@clock_app.command(epilog=_CLOCK_EXAMPLES)
def advance(
    by: Annotated[str, typer.Argument(metavar="TIME", help="How far: 90s, 29m58s, 1h or 2d.")],
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Move the time forward; return when everything due has ended."""
    _change({"advance_s": _seconds(by)}, url, as_json=as_json)


@clock_app.command(epilog=_CLOCK_EXAMPLES)
def freeze(url: Url = None, as_json: Json = False) -> None:
    """Stop the time; then only advance moves it."""
    _change({"frozen": True}, url, as_json=as_json)


@clock_app.command(epilog=_CLOCK_EXAMPLES)
def unfreeze(url: Url = None, as_json: Json = False) -> None:
    """Resume the time."""
    _change({"frozen": False}, url, as_json=as_json)


def _change(body: Mapping[str, Any], url: str | None, *, as_json: bool) -> None:
    answer = env.connect(url).admin(_CLOCK, {}, method="POST", body=body)
    _print(answer.json(), as_json=as_json)


def _print(time: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(time))
        return
    now = dt.datetime.fromisoformat(time["now"])
    moved = dt.timedelta(seconds=time["offset_s"])
    ahead = f", {moved} ahead of the wall clock" if moved else ""
    typer.echo(f"{now:%Y-%m-%d %H:%M:%S} UTC{ahead}{', frozen' * time['frozen']}")


def _seconds(text: str) -> float:
    parts = re.findall(r"(\d+(?:\.\d+)?)([dhms])", text, re.ASCII)
    if not parts or "".join(map("".join, parts)) != text:
        raise AgentDoubleError(f"The time must be like 90s, 29m58s, 1h or 2d, not {text[:40]!r}.")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


_NODES = "/_emulator/nodes"
_COLUMNS = ("name", "state", "sessions", "capacity", "free", "busy", "version", "reason")

_NODES_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble serve --nodes ray://10.0.0.1:6379

  agentdouble nodes list

  agentdouble nodes drain worker-2-3fa9c1 --deadline 10m
""")

nodes_app = command_group("List and drain the nodes of a running double.", _NODES_EXAMPLES)


@nodes_app.command("list", epilog=_NODES_EXAMPLES)
def list_nodes(url: Url = None, as_json: Json = False) -> None:
    """List the nodes with their state, sessions and load."""
    _print_nodes(env.connect(url).admin(_NODES, {}).json()["nodes"], as_json=as_json)


@nodes_app.command(epilog=_NODES_EXAMPLES)
def drain(
    name: Annotated[str, typer.Argument(help="The name of the node.")],
    deadline: Annotated[
        str, typer.Option(metavar="TIME", help="When its sessions end: 90s, 30m or 1h.")
    ] = "30m",
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Place no more sessions on a node; it ends when it has none, or at the deadline."""
    body = {"deadline_s": _seconds(deadline)}
    answer = env.connect(url).admin(f"{_NODES}/{name}/drain", {}, method="POST", body=body)
    _print_nodes(answer.json()["nodes"], as_json=as_json)


def _print_nodes(nodes: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    rows = [{name: "" if v is None else v for name, v in node.items()} for node in nodes]
    print_table(_COLUMNS, rows, nodes, as_json=as_json)
