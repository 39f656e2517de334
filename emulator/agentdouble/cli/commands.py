"""The commands for a running double: sessions, clock, journal, faults."""

from __future__ import annotations

from typing import Annotated

import typer

from agentdouble.cli.options import Json, Url, formatted

JOURNAL_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble journal                          the latest requests

  agentdouble journal --follow --action InvokeTool

  agentdouble journal --status 500 --json | jq .url

[bold]Exit codes[/bold]  0: done or stopped by Ctrl-C, 2: there is no double, or it refused.
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
        bool, typer.Option("--follow", "-f", help="Continue with new requests until Ctrl-C.")
    ] = False,
    tail: Annotated[int, typer.Option("--tail", "-n", min=0, help="Number of requests.")] = 100,
    method: Annotated[str | None, typer.Option(help="Only with this method.")] = None,
    path: Annotated[str | None, typer.Option(help="Only for this path, without a query.")] = None,
    status: Annotated[str | None, typer.Option(help="Only with this status.")] = None,
    action: Annotated[str | None, typer.Option(help="Only this action.")] = None,
    session: Annotated[str | None, typer.Option(help="Only of this SessionId.")] = None,
    url: Url = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, a line for each request.")
    ] = False,
) -> None:
    """List the requests of a running double, or follow them."""
    from agentdouble.cli import journal as listing

    names = {"method": method, "path": path, "status": status, "action": action, "session": session}
    filters = {name: value for name, value in names.items() if value is not None}
    listing.show(filters, tail, url, follow=follow, as_json=as_json)


@clock_app.command(epilog=_CLOCK_EXAMPLES)
def show(url: Url = None, as_json: Json = False) -> None:
    """Show the double's time."""
    from agentdouble.cli import sessions

    sessions.show_clock(url, as_json=as_json)


@clock_app.command(epilog=_CLOCK_EXAMPLES)
def advance(
    by: Annotated[str, typer.Argument(metavar="TIME", help="How far: 90s, 29m58s, 1h or 2d.")],
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Move the time forward; return when everything due has ended."""
    from agentdouble.cli import sessions

    sessions.advance(by, url, as_json=as_json)


@clock_app.command(epilog=_CLOCK_EXAMPLES)
def freeze(url: Url = None, as_json: Json = False) -> None:
    """Stop the time; then only advance moves it."""
    from agentdouble.cli import sessions

    sessions.freeze(url, frozen=True, as_json=as_json)


@clock_app.command(epilog=_CLOCK_EXAMPLES)
def unfreeze(url: Url = None, as_json: Json = False) -> None:
    """Resume the time."""
    from agentdouble.cli import sessions

    sessions.freeze(url, frozen=False, as_json=as_json)


Session = Annotated[str, typer.Argument(help="Its SessionId (s-...) or its UserSessionId.")]
Tool = Annotated[str | None, typer.Option(help="The tool's id; every tool if absent.")]

_SESSION_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble session delete s-0123456789abcdef0123

  agentdouble session attach my_agent_ann_s1

  echo 'print(x)' | agentdouble session attach s-0123456789abcdef0123

[bold]Keys[/bold]  Ctrl-C interrupts the code, Ctrl-D leaves; the session lives on.
""")

session_app = typer.Typer(
    no_args_is_help=True,
    help="Living sessions of a running double.",
    epilog=_SESSION_EXAMPLES,
)


@session_app.command("list", epilog=_SESSION_EXAMPLES)
def list_sessions(tool: Tool = None, url: Url = None, as_json: Json = False) -> None:
    """List the living sessions."""
    from agentdouble.cli import sessions

    sessions.show_all(tool, url, as_json=as_json)


@session_app.command(epilog=_SESSION_EXAMPLES)
def delete(session: Session, tool: Tool = None, url: Url = None, as_json: Json = False) -> None:
    """End a session now."""
    from agentdouble.cli import sessions

    sessions.delete(session, tool, url, as_json=as_json)


@session_app.command(epilog=_SESSION_EXAMPLES)
def attach(
    session: Session,
    tool: Tool = None,
    language: Annotated[str, typer.Option(help="The language of the code.")] = "python3",
    timeout: Annotated[int, typer.Option(help="Seconds that a cell may take.")] = 300,
    url: Url = None,
) -> None:
    """Run code in a living session's kernel, typed or from a pipe."""
    from agentdouble.cli import attach as console

    raise typer.Exit(console.attach(session, tool, language, timeout, url))


_FAULT_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble faults arm fail InvokeTool status=503 nth=2     the second call from now

  agentdouble faults arm delay InvokeTool                     it waits until you release it

  agentdouble faults arm '{"kind": "cut", "operation": "/run_sse", "after": 3}'

  agentdouble faults release f1                               the waiting calls continue

  agentdouble faults remove f1
""")

Fault = Annotated[str, typer.Argument(help="Its id, f1.")]

fault_app = typer.Typer(
    no_args_is_help=True,
    help="Faults of a running double: arm, list, release and remove them.",
    epilog=_FAULT_EXAMPLES,
)


@fault_app.command("list", epilog=_FAULT_EXAMPLES)
def list_faults(url: Url = None, as_json: Json = False) -> None:
    """List the armed faults, with how often each has happened."""
    from agentdouble.cli import faults

    faults.show_all(url, as_json=as_json)


@fault_app.command(epilog=_FAULT_EXAMPLES)
def arm(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND OPERATION [NAME=VALUE]... | JSON",
            help="Its kind, operation and fields; a VALUE is JSON or text.",
        ),
    ],
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Arm a fault for coming calls, and print its id."""
    from agentdouble.cli import faults

    faults.arm(words, url, as_json=as_json)


@fault_app.command(epilog=_FAULT_EXAMPLES)
def release(fault: Fault, url: Url = None, as_json: Json = False) -> None:
    """Release the calls that a fault holds; later ones wait again."""
    from agentdouble.cli import faults

    faults.release(fault, url, as_json=as_json)


@fault_app.command(epilog=_FAULT_EXAMPLES)
def remove(
    fault: Annotated[str | None, typer.Argument(help="Its id, f1.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove every fault.")] = False,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Remove a fault; the calls that it holds continue."""
    from agentdouble.cli import faults

    faults.remove(fault, url, everything=everything, as_json=as_json)
