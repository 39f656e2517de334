"""``agentdouble exec``: its options, and the examples in its help text."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agentdouble.cli import env
from agentdouble.cli.options import (
    Agents,
    Config,
    Faults,
    Profile,
    State,
    Tls,
    UnknownChoices,
    formatted,
)
from agentdouble.core.environment import CLIENTS

EXEC_EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble exec -- pytest

  agentdouble exec -- sh -c 'curl -s $AGENTDOUBLE_URL/list-apps'

  agentdouble exec --app my_agent:app -- python client.py

  agentdouble exec --for veadk --tls -- veadk web

  agentdouble exec --config runtimes.toml -- ./smoke.sh

The command gets the variables of [bold]agentdouble env[/bold], of every client if none is
named, AGENTDOUBLE_URL, DOUBLECHECK_URL, and AGENTDOUBLE_URL_NAME for a runtime of that name.

[bold]Exit codes[/bold]  those of the command, 128 and the signal's number if one ended it,
127: command not found, 126: it cannot be run, 2: the double could not start.
""")


def exec_(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="What to run.")],
    client: Annotated[
        list[str] | None,
        typer.Option(
            "--for",
            metavar="CLIENT",
            help=f"Whose variables: {', '.join(CLIENTS)} (all of them).",
        ),
    ] = None,
    app: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]MODULE:APP", help="An application to serve (the coder)."),
    ] = None,
    port: Annotated[int | None, typer.Option(metavar="PORT", help="Port (a free one).")] = None,
    tls: Tls = False,
    agents: Agents = None,
    unknown: UnknownChoices = None,
    profile: Profile = None,
    state: State = None,
    faults: Faults = None,
    config: Config = None,
) -> None:
    """Run a command with a new double that its clients find, then stop the double."""
    from agentdouble.cli import executing, serving  # slow: the double, 1 s

    clients = executing.selected(client or ())
    overrides: dict[str, Any] = {
        "port": port or 0,
        "tls": tls or None,
        "agents": agents,
        "profile": profile,
        "state": env.state(state),
        "faults": None if faults is None else serving.read_faults(faults),
    }
    settings = serving.settings_of(overrides, tuple(unknown or ()), config)
    code = executing.run(command, tuple(app or ()), settings, clients)
    raise typer.Exit(code)
