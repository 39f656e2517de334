"""``agentdouble faults``: the options of its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from agentdouble.cli.options import Json, Url, formatted

_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble faults arm fail InvokeTool status=503 nth=2     the second call from now

  agentdouble faults arm fail mcp:tools/call times=all        every call, until it is removed

  agentdouble faults arm delay InvokeTool                     it waits until it is released

  agentdouble faults arm '{"kind": "cut", "operation": "/run_sse", "after": 3}'

  agentdouble faults release f1                               the calls that wait go on

  agentdouble faults remove f1
""")

Fault = Annotated[str, typer.Argument(help="Its id, f1.")]

fault_app = typer.Typer(
    no_args_is_help=True,
    help="Faults of a running double: arm, list, release and remove them.",
    epilog=_EXAMPLES,
)


@fault_app.command("list", epilog=_EXAMPLES)
def list_(url: Url = None, as_json: Json = False) -> None:
    """List the armed faults, with how often each has happened."""
    from agentdouble.cli import faults

    faults.show_all(url, as_json=as_json)


@fault_app.command(epilog=_EXAMPLES)
def kinds(url: Url = None, as_json: Json = False) -> None:
    """List the kinds of faults with their fields; --json prints their JSON Schemas."""
    from agentdouble.cli import faults

    faults.show_kinds(url, as_json=as_json)


@fault_app.command(epilog=_EXAMPLES)
def arm(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND OPERATION [NAME=VALUE]... | JSON",
            help="Its kind, the operation it is for, and its fields; a VALUE is JSON or text.",
        ),
    ],
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Arm a fault for coming calls, and print its id."""
    from agentdouble.cli import faults

    faults.arm(words, url, as_json=as_json)


@fault_app.command(epilog=_EXAMPLES)
def release(fault: Fault, url: Url = None, as_json: Json = False) -> None:
    """Release the calls that a fault holds; later ones wait again."""
    from agentdouble.cli import faults

    faults.release(fault, url, as_json=as_json)


@fault_app.command(epilog=_EXAMPLES)
def remove(
    fault: Annotated[str | None, typer.Argument(help="Its id, f1.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove every fault.")] = False,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Remove a fault; the calls that it holds go on."""
    from agentdouble.cli import faults

    faults.remove(fault, url, everything=everything, as_json=as_json)
