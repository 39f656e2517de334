"""``agentdouble clock show | advance | freeze | unfreeze``: the time of a running double."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from agentdouble.cli import env
from agentdouble.cli.options import Json, Url, formatted
from agentdouble.errors import AgentDoubleError

_CLOCK = "/_emulator/clock"
_UNITS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}

_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble clock show

  agentdouble clock advance 29m58s             ends the sessions that are due

  agentdouble clock freeze
""")

clock_app = typer.Typer(
    no_args_is_help=True,
    help="Show, move and stop the time of a running double.",
    epilog=_EXAMPLES,
)


@clock_app.command(epilog=_EXAMPLES)
def show(url: Url = None, as_json: Json = False) -> None:
    """Show the double's time."""
    _print(env.connect(url).admin(_CLOCK, {}).json(), as_json=as_json)


@clock_app.command(epilog=_EXAMPLES)
def advance(
    by: Annotated[str, typer.Argument(metavar="TIME", help="How far: 90s, 29m58s, 1h or 2d.")],
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Move the time forward; return when everything due has ended."""
    _change({"advance_s": _seconds(by)}, url, as_json=as_json)


@clock_app.command(epilog=_EXAMPLES)
def freeze(url: Url = None, as_json: Json = False) -> None:
    """Stop the time; then only advance moves it."""
    _change({"frozen": True}, url, as_json=as_json)


@clock_app.command(epilog=_EXAMPLES)
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
