"""``agentdouble journal``: the requests of a running double, past and to come."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import typer
from httpx_sse import EventSource, ServerSentEvent
from rich.console import Console
from rich.text import Text

from agentdouble.cli import control
from agentdouble.cli.control import ControlPlane
from agentdouble.errors import PlatformUnreachableError
from agentdouble.journal_routes import FILTERS
from agentdouble.mistakes import printable

_JOURNAL, _EVENTS = "/_emulator/journal", "/_emulator/events"
_AGAIN_S = (0.2, 0.5, 1.0, 2.0)  # the pauses before a lost connection is tried again

Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Wanted:
    """Which requests: those that all the filters of the route choose, and how many of the last."""

    filters: Mapping[str, str]
    tail: int

    def fits(self, entry: Entry) -> bool:
        """Return whether the filters choose an entry that comes with an event."""
        shown: Any = SimpleNamespace(**entry)
        return all(FILTERS[name](shown, value) for name, value in self.filters.items())


def show(wanted: Wanted, url: str | None, *, follow: bool, as_json: bool) -> None:
    """Print the requests, as JSON or for people; with ``follow`` continue until Ctrl-C."""
    plane, printer = control.connect(url), _Printer(as_json=as_json)
    if follow:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(_interruptible(_Following(plane, wanted, printer)))
        return
    found = plane.own(_JOURNAL, wanted.filters).json()["entries"]
    for entry in found[max(0, len(found) - wanted.tail) :]:
        printer.print(entry)


class _Printer:
    """A printer of requests; it uses colours only on a terminal."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._console = Console(highlight=False, soft_wrap=True)

    def print(self, entry: Entry) -> None:
        if self._as_json:
            typer.echo(json.dumps(entry))
        else:
            self._console.print(_line(entry))


def _line(entry: Entry) -> Text:
    at = dt.datetime.fromisoformat(entry["at"]).astimezone()
    status, took = entry["status"], entry["duration_ms"]
    parts = [
        (f"{at:%H:%M:%S}.{at.microsecond // 1000:03d} ", "dim"),
        (f"#{entry['id']} ", "cyan"),
        (f"{_call(entry)} ", "bold"),
        (f"{'...' if status is None else status} ", _style(status)),
        ("running" if took is None else f"{took:.0f} ms", ""),
    ]
    parts += [(f", caused by #{entry['caused_by']}", "")] if entry["caused_by"] else []
    parts += [(f", {entry['session']}", "dim")] if entry["session"] else []
    parts += [(f", {len(entry['unknowns'])} unknowns", "dim")] if entry["unknowns"] else []
    parts += [(f", unread {', '.join(entry['unread'])}", "yellow")] if entry["unread"] else []
    parts += [(f", fault {one}", "yellow") for one in entry["faults"]]
    parts += [(f", failure {one}", "red") for one in entry["failures"]]
    return Text.assemble(*((printable(text), style) for text, style in parts))


def _call(entry: Entry) -> str:
    """Return the action of the control plane, or the method and the address without its host."""
    parts = urlsplit(entry["url"])
    action = parse_qs(parts.query).get("Action") if parts.path == "/" else None
    if action:
        return action[0]
    return f"{entry['method']} {parts.path}{'?' + parts.query if parts.query else ''}"


def _style(status: int | None) -> str:
    return "" if status is None else "red" if status >= 400 else "green"


async def _interruptible(following: _Following) -> None:
    """Follow until Ctrl-C, which a blocking call could miss."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGINT, task.cancel)
    try:
        await following.run()
    finally:
        loop.remove_signal_handler(signal.SIGINT)


@dataclass
class _Following:
    """Prints each request once, when it is answered, over lost connections and restarts."""

    plane: ControlPlane
    wanted: Wanted
    printer: _Printer
    _printed: set[int] = field(default_factory=set)
    _last: str = ""  # the id of the last event
    _begun: bool = False

    async def run(self) -> None:
        """Print for ever; raise AgentDoubleError if the double cannot be reached at first."""
        tries = 0
        while True:
            try:
                resumed = {"Last-Event-ID": self._last} if self._last else {}
                async with self.plane.own_events(_EVENTS, _QUERY, resumed) as source:
                    tries = 0
                    await self._print(source)
            except PlatformUnreachableError:
                if not self._begun:
                    raise
            if not tries:
                typer.echo("The connection is lost; it is tried again until Ctrl-C.", err=True)
            await asyncio.sleep(_AGAIN_S[min(tries, len(_AGAIN_S) - 1)])
            tries += 1

    async def _print(self, source: EventSource) -> None:
        async for event in source.aiter_sse():
            if not event.event or not event.data:
                continue
            self._note_double(event)
            if event.event in ("listening", "resync"):
                await self._catch_up()
            else:
                self._show(json.loads(event.data))

    def _note_double(self, event: ServerSentEvent) -> None:
        """Forget what was printed if this is another double: its ids begin anew."""
        if event.id.partition("-")[0] != self._last.partition("-")[0]:
            self._printed.clear()
        self._last = event.id

    async def _catch_up(self) -> None:
        """Print what the stream did not tell: at first the last requests, then all missing ones."""
        answer = await asyncio.to_thread(self.plane.own, _JOURNAL, self.wanted.filters)
        found = [entry for entry in answer.json()["entries"] if entry["duration_ms"] is not None]
        if not self._begun:
            older = found[: max(0, len(found) - self.wanted.tail)]
            self._printed.update(entry["id"] for entry in older)
            self._begun = True
        for entry in found:
            self._show(entry)

    def _show(self, entry: Entry) -> None:
        answered = entry["duration_ms"] is not None and entry["id"] not in self._printed
        if answered and self.wanted.fits(entry):
            self._printed.add(entry["id"])
            self.printer.print({name: entry[name] for name in entry if name != "happened"})


_QUERY = {"only": "request"}
