"""``agentdouble journal``: the past and coming requests of a running double."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import signal
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import typer
from rich.text import Text

from agentdouble.cli import connections
from agentdouble.cli.control import ControlPlaneClient, advice
from agentdouble.core import terminal
from agentdouble.core.log_filters import printable
from agentdouble.errors import PlatformUnreachableError
from agentdouble.journal.filters import FILTERS

_JOURNAL, _EVENTS = "/_emulator/journal", "/_emulator/events"

Entry = Mapping[str, Any]


def show(
    filters: Mapping[str, str], tail: int, url: str | None, *, follow: bool, as_json: bool
) -> None:
    """Print the last ``tail`` requests that match all filters, as JSON or text.

    With ``follow`` continue until Ctrl-C.
    """
    plane = connections.connect(url)
    console = terminal.console(highlight=False, soft_wrap=True)

    def print_entry(entry: Entry) -> None:
        if as_json:
            typer.echo(json.dumps(entry))
        else:
            console.print(_line(entry))

    if follow:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(_follow(plane, filters, tail, print_entry))
        return
    entries = _last(plane, filters, tail)
    for entry in entries:
        print_entry(entry)
    if not entries and tail and not as_json:
        like = " like this" if filters else ""
        typer.echo(f"The journal has no request{like}.", err=True)


def _line(entry: Entry) -> Text:
    at = dt.datetime.fromisoformat(entry["at"]).astimezone()
    status, took = entry["status"], entry["duration_ms"]
    parts = [
        (f"{at:%H:%M:%S}.{at.microsecond // 1000:03d} ", "dim"),
        (f"#{entry['id']} ", "cyan"),
        (f"{_call(entry)} ", "bold"),
        (f"{'...' if status is None else status} ", "red" if (status or 0) >= 400 else "green"),
        ("running" if took is None else f"{took:.0f} ms", ""),
    ]
    parts += [(f", caused by #{entry['caused_by']}", "")] if entry["caused_by"] else []
    parts += [(f", {entry['session']}", "dim")] if entry["session"] else []
    parts += [(f", {len(entry['unknowns'])} unknowns", "dim")] if entry["unknowns"] else []
    parts += [(f", unread {', '.join(entry['unread'])}", "yellow")] if entry["unread"] else []
    parts += [(f", fault {fault}", "yellow") for fault in entry["faults"]]
    parts += [(f", failure {failure}", "red") for failure in entry["failures"]]
    return Text.assemble(*((printable(text), style) for text, style in parts))


def _call(entry: Entry) -> str:
    """Return the action of the control plane, or the method and the address without its host."""
    parts = urlsplit(entry["url"])
    action = parse_qs(parts.query).get("Action") if parts.path == "/" else None
    if action:
        return action[0]
    return f"{entry['method']} {parts.path}{'?' + parts.query if parts.query else ''}"


async def _follow(
    plane: ControlPlaneClient,
    filters: Mapping[str, str],
    tail: int,
    print_entry: Callable[[Entry], None],
) -> None:
    """Print each request when it is answered; stop at Ctrl-C, which a blocking call could miss."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGINT, task.cancel)
    try:
        listed: set[int] = set()  # these may have been answered while the list was read
        async with plane.admin_events(_EVENTS, {"only": "request"}) as source:
            async for event in source.aiter_sse():
                entries: list[Entry] = []
                if event.event == "listening":
                    entries = await asyncio.to_thread(_last, plane, filters, tail)
                    listed = {entry["id"] for entry in entries if entry["duration_ms"] is not None}
                elif event.event == "resync":
                    typer.echo("Some requests were skipped: there were too many.", err=True)
                elif event.event and event.data:
                    entry = json.loads(event.data)
                    entries = [] if entry["id"] in listed else [entry]
                for entry in entries:
                    if entry["duration_ms"] is not None and _fits(entry, filters):
                        print_entry({name: entry[name] for name in entry if name != "happened"})
    finally:
        loop.remove_signal_handler(signal.SIGINT)
    raise PlatformUnreachableError(plane.url, "the connection ended", advice=advice())


def _fits(entry: Entry, filters: Mapping[str, str]) -> bool:
    """Return whether an entry from an event matches the filters of the route."""
    namespace: Any = SimpleNamespace(**entry)
    return all(FILTERS[name](namespace, value) for name, value in filters.items())


def _last(plane: ControlPlaneClient, filters: Mapping[str, str], tail: int) -> list[Entry]:
    entries: list[Entry] = plane.admin(_JOURNAL, filters).json()["entries"]
    return entries[max(0, len(entries) - tail) :]
