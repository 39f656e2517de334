"""``agentdouble runtime logs``: the output of a runtime's instances, past and live."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import typer
from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.text import Text

from agentdouble.cli import control
from agentdouble.cli.control import ControlPlane

_STYLES = {"stdout": "", "stderr": "red", "double": "bold yellow"}


@dataclass(frozen=True)
class Wanted:
    """The runtime, or the MCP service, and the selection of its lines."""

    name: str
    tail: int
    search: str = ""
    instance: str | None = None
    follow: bool = False
    of: str = "runtimes"

    @property
    def path(self) -> str:
        """The path of the double's own route."""
        return f"/_emulator/{self.of}/{quote(self.name, safe='', errors='replace')}/logs"

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters of the route."""
        found = {"tail": str(self.tail), "search": self.search.encode(errors="replace").decode()}
        if self.instance is not None:
            found["instance"] = self.instance.encode(errors="replace").decode()
        return {**found, "follow": "true"} if self.follow else found


def show(wanted: Wanted, url: str | None, *, as_json: bool) -> None:
    """Print the lines, as JSON or for people; with ``follow`` continue until Ctrl-C."""
    printer = _Printer(as_json=as_json)
    plane = control.connect(url)
    if wanted.follow:
        _follow(plane, wanted, printer)
        return
    for line in plane.own(wanted.path, wanted.query).text.splitlines():
        printer.print(line)


class _Printer:
    """A printer of lines; it uses colours, also those of the application, only on a terminal."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._console = Console(highlight=False, soft_wrap=True)

    def print(self, line: str) -> None:
        if self._as_json:
            typer.echo(line)
        else:
            self._console.print(_shown(json.loads(line)))


def _shown(line: Mapping[str, Any]) -> Text:
    at = dt.datetime.fromisoformat(line["at"]).astimezone()
    text = AnsiDecoder().decode_line(line["text"])  # from_ansi breaks it at more
    text.style = _STYLES[line["stream"]]
    return Text.assemble(
        (f"{at:%H:%M:%S}.{at.microsecond // 1000:03d} ", "dim"),
        (f"{line['instance']} ", "cyan"),
        text,
    )


def _follow(plane: ControlPlane, wanted: Wanted, printer: _Printer) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_print_events(plane, wanted, printer))


async def _print_events(plane: ControlPlane, wanted: Wanted, printer: _Printer) -> None:
    """Print until the runtime ends or until Ctrl-C, which a blocking call could miss."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGINT, task.cancel)
    try:
        async with plane.own_events(wanted.path, wanted.query) as source:
            async for event in source.aiter_sse():
                printer.print(event.data)
    finally:
        loop.remove_signal_handler(signal.SIGINT)
