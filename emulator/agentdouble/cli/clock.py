"""``agentdouble clock``: the double's time."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from agentdouble.cli import connections
from agentdouble.cli.options import Json, Url, command_group, seconds
from agentdouble.core.terminal import help_text
from agentdouble.errors import AgentDoubleError

_CLOCK = "/_emulator/clock"

_CLOCK_EXAMPLES = help_text("""
Examples:
  agentdouble clock show
  agentdouble clock advance 29m58s         ends the sessions that are due
  agentdouble clock freeze
  agentdouble clock unfreeze

Exit codes:
  0  done
  2  there is no double, or it refused
""")

clock_app = command_group("Show, move and stop the time of a running double.", _CLOCK_EXAMPLES)


@clock_app.command(epilog=_CLOCK_EXAMPLES)
def show(url: Url = None, as_json: Json = False) -> None:
    """Show the double's time."""
    _print(connections.connect(url).admin(_CLOCK, {}).json(), as_json=as_json)


# -5m is a time here, and no option that does not exist
@clock_app.command(epilog=_CLOCK_EXAMPLES, context_settings={"ignore_unknown_options": True})
def advance(
    by: Annotated[str, typer.Argument(metavar="TIME", help="How far: 90s, 29m58s, 1h or 2d.")],
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Move the time forward; return when everything due has ended."""
    step = seconds(by)
    if step < 0:
        raise AgentDoubleError(
            "Time only moves forward. A reset sets it back, and ends the sessions: "
            "POST /_emulator/reset, or platform.reset() in Python."
        )
    _change({"advance_s": step}, url, as_json=as_json)


@clock_app.command(epilog=_CLOCK_EXAMPLES)
def freeze(url: Url = None, as_json: Json = False) -> None:
    """Stop the time; then only advance moves it."""
    _change({"frozen": True}, url, as_json=as_json)


@clock_app.command(epilog=_CLOCK_EXAMPLES)
def unfreeze(url: Url = None, as_json: Json = False) -> None:
    """Resume the time."""
    _change({"frozen": False}, url, as_json=as_json)


def _change(body: Mapping[str, Any], url: str | None, *, as_json: bool) -> None:
    answer = connections.connect(url).admin(_CLOCK, {}, method="POST", body=body)
    _print(answer.json(), as_json=as_json)


def _print(time: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(time))
        return
    now = dt.datetime.fromisoformat(time["now"])
    moved = dt.timedelta(seconds=time["offset_s"])
    ahead = f", {moved} ahead of the wall clock" if moved else ""
    typer.echo(f"{now:%Y-%m-%d %H:%M:%S} UTC{ahead}{', frozen' * time['frozen']}")
