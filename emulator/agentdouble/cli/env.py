"""``agentdouble env``: the variables of a double for clients."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

import typer

from agentdouble.cli.connections import connect, connection_at, double_at
from agentdouble.core import environment
from agentdouble.errors import AgentDoubleError


def show(client: str, port: int | None, url: str | None, *, as_json: bool) -> None:
    """Print a client's variables as ``export`` lines or as JSON."""
    if port is not None and url is not None:
        raise AgentDoubleError("--port and --url both name a double: give one of them.")
    check_client(client)
    connection = double_at(port) if url is None else connection_at(url)
    if not connection.secret_key:
        connect(url).require_keys()  # says what is wrong there
    variables = environment.variables(connection, client)
    if as_json:
        typer.echo(json.dumps(variables, indent=2))
        return
    typer.echo(exports(variables))


def check_client(client: str) -> None:
    """Raise AgentDoubleError if no client has that name."""
    if client not in environment.CLIENTS:
        clients = ", ".join(environment.CLIENTS)
        raise AgentDoubleError(f"--for takes one of {clients}; {client!r} is none of them.")


def exports(variables: Mapping[str, str]) -> str:
    """Return variables as lines for a shell."""
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())
