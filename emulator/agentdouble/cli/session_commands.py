"""``agentdouble session`` and ``agentdouble attach``: the options of the commands."""

from __future__ import annotations

from typing import Annotated

import typer

from agentdouble.cli.options import formatted
from agentdouble.cli.tool_commands import Json, Url

Session = Annotated[str, typer.Argument(help="Its SessionId (s-...) or its UserSessionId.")]
Tool = Annotated[str | None, typer.Option(help="The tool's id; every tool if absent.")]

_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble session list --tool t-sandbox

  agentdouble session show my_agent_ann_s1     with its log

  agentdouble session destroy s-0123456789abcdef0123

  agentdouble session snapshot my_agent_ann_s1          prints its id

  agentdouble session resume snap-0123456789 --new      another session, with that state
""")

session_app = typer.Typer(
    no_args_is_help=True,
    help="Living sessions of a running double, and their snapshots.",
    epilog=_EXAMPLES,
)

_SNAPSHOT_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble session snapshot my_agent_ann_s1          keep how the session is now

  agentdouble session snapshots                         those that there are

  agentdouble session resume snap-0123456789            return the session to it

  agentdouble session resume snap-0123456789 --new      make another session of it

  agentdouble session snapshots --delete snap-0123456789

The state of Python and the files are in a snapshot; threads, child processes, connections, bash,
JavaScript and the browser are not. It ends with the double.
""")

ATTACH_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble attach my_agent_ann_s1

  echo 'print(x)' | agentdouble attach s-0123456789abcdef0123

[bold]Keys[/bold]  Ctrl-C interrupts the code, Ctrl-D leaves; the session lives on.
""")


@session_app.command("list", epilog=_EXAMPLES)
def list_(tool: Tool = None, url: Url = None, as_json: Json = False) -> None:
    """List the living sessions."""
    from agentdouble.cli import sessions

    sessions.show_all(tool, url, as_json=as_json)


@session_app.command(epilog=_EXAMPLES)
def show(session: Session, tool: Tool = None, url: Url = None, as_json: Json = False) -> None:
    """Show a session and what happened in it."""
    from agentdouble.cli import sessions

    sessions.show(session, tool, url, as_json=as_json)


@session_app.command(epilog=_EXAMPLES)
def destroy(session: Session, tool: Tool = None, url: Url = None, as_json: Json = False) -> None:
    """End a session now."""
    from agentdouble.cli import sessions

    sessions.destroy(session, tool, url, as_json=as_json)


@session_app.command(epilog=_SNAPSHOT_EXAMPLES)
def snapshot(session: Session, tool: Tool = None, url: Url = None, as_json: Json = False) -> None:
    """Keep how a session is now, and print the id of the snapshot."""
    from agentdouble.cli import session_snapshots

    session_snapshots.take(session, tool, url, as_json=as_json)


@session_app.command(epilog=_SNAPSHOT_EXAMPLES)
def snapshots(
    delete: Annotated[str | None, typer.Option(metavar="SNAPSHOT", help="Delete this one.")] = None,
    tool: Tool = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """List the snapshots of sessions, or delete one; sessions made of it live on."""
    from agentdouble.cli import session_snapshots

    if delete is not None:
        session_snapshots.delete(delete, tool, url, as_json=as_json)
    else:
        session_snapshots.show_all(tool, url, as_json=as_json)


@session_app.command(epilog=_SNAPSHOT_EXAMPLES)
def resume(
    snapshot: Annotated[str, typer.Argument(help="Its SnapshotId (snap-...).")],
    new: Annotated[bool, typer.Option("--new", help="Make another session of it.")] = False,
    ttl: Annotated[int | None, typer.Option(help="Seconds that the session is valid.")] = None,
    tool: Tool = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Return a session to how it was in a snapshot, or make another one of it."""
    from agentdouble.cli import session_snapshots

    session_snapshots.resume(snapshot, tool, url, new=new, ttl_s=ttl, as_json=as_json)


def attach(
    session: Session,
    tool: Tool = None,
    language: Annotated[str, typer.Option(help="The language of the code.")] = "python3",
    timeout: Annotated[int, typer.Option(help="Seconds that a cell may take.")] = 300,
    url: Url = None,
) -> None:
    """Type code into a living session's kernel; or pipe it in."""
    from agentdouble.cli import attach as console

    raise typer.Exit(console.attach(session, tool, language, timeout, url))
