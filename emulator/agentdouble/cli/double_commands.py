"""``agentdouble journal``, ``reset`` and ``clock``: the options of the commands."""

from __future__ import annotations

from typing import Annotated

import typer

from agentdouble.cli.options import Json, Url, formatted

JOURNAL_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble journal                          the latest requests

  agentdouble journal --follow --action InvokeTool

  agentdouble journal --status 500 --json | jq .url

  agentdouble journal --caused-by 12           what the code of request 12 sent

[bold]Exit codes[/bold]  0: done or stopped by Ctrl-C, 2: there is no double, or it refused.
""")

RESET_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble reset                            all but what its state keeps

  agentdouble reset --keep sessions --keep tools

  agentdouble reset --everything               what its state keeps as well

[bold]Parts[/bold]  sessions, session_snapshots, tools, mcp, runtimes, agent_sessions, tasks, journal,
clock, faults, and state, which stands for those that the state keeps.
""")

_CLOCK_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble clock show

  agentdouble clock advance 29m58s             sessions that are due then end

  agentdouble clock freeze
""")

clock_app = typer.Typer(
    no_args_is_help=True,
    help="The time of a running double: show it, move it forward, stop it.",
    epilog=_CLOCK_EXAMPLES,
)


def journal(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with new requests until Ctrl-C.")
    ] = False,
    tail: Annotated[int, typer.Option("--tail", "-n", min=0, help="How many of the last.")] = 100,
    method: Annotated[str | None, typer.Option(help="Only with this method.")] = None,
    path: Annotated[str | None, typer.Option(help="Only for this path, without a query.")] = None,
    status: Annotated[str | None, typer.Option(help="Only with this status.")] = None,
    action: Annotated[str | None, typer.Option(help="Only this action.")] = None,
    session: Annotated[str | None, typer.Option(help="Only of this SessionId.")] = None,
    caused_by: Annotated[str | None, typer.Option(help="Only what this request caused.")] = None,
    unknown: Annotated[str | None, typer.Option(help="Only what relied on this unknown.")] = None,
    unread: Annotated[str | None, typer.Option(help="Only with this unread field.")] = None,
    fault: Annotated[str | None, typer.Option(help="Only met by this fault: 'f1 fail'.")] = None,
    failure: Annotated[str | None, typer.Option(help="Only with this failure.")] = None,
    url: Url = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, a line for each request.")
    ] = False,
) -> None:
    """List the requests of a running double, or follow them."""
    from agentdouble.cli import journal as listing

    given = {
        "method": method,
        "path": path,
        "status": status,
        "action": action,
        "session": session,
        "caused_by": caused_by,
        "unknown": unknown,
        "unread": unread,
        "fault": fault,
        "failure": failure,
    }
    filters = {name: value for name, value in given.items() if value is not None}
    listing.show(listing.Wanted(filters, tail), url, follow=follow, as_json=as_json)


def reset(
    keep: Annotated[
        list[str] | None, typer.Option(metavar="PART", help="A part to keep; state by default.")
    ] = None,
    everything: Annotated[bool, typer.Option("--everything", help="Keep nothing.")] = False,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Return a running double to how it started; return when that is done."""
    from agentdouble.cli import double

    double.reset(keep, url, everything=everything, as_json=as_json)


@clock_app.command(epilog=_CLOCK_EXAMPLES)
def show(url: Url = None, as_json: Json = False) -> None:
    """Print the double's time."""
    from agentdouble.cli import double

    double.show_clock(url, as_json=as_json)


@clock_app.command(epilog=_CLOCK_EXAMPLES)
def advance(
    by: Annotated[str, typer.Argument(metavar="TIME", help="How far: 90s, 29m58s, 1h or 2d.")],
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Move the time forward; return when all that is due has ended."""
    from agentdouble.cli import double

    double.advance(by, url, as_json=as_json)


@clock_app.command(epilog=_CLOCK_EXAMPLES)
def freeze(url: Url = None, as_json: Json = False) -> None:
    """Stop the time; only advance moves it then."""
    from agentdouble.cli import double

    double.freeze(url, frozen=True, as_json=as_json)


@clock_app.command(epilog=_CLOCK_EXAMPLES)
def unfreeze(url: Url = None, as_json: Json = False) -> None:
    """Let the time go on."""
    from agentdouble.cli import double

    double.freeze(url, frozen=False, as_json=as_json)
