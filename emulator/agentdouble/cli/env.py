"""``agentdouble env``: the variables that point a client at the running double."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping

import typer

from agentdouble import environment, running
from agentdouble.environment import Connection
from agentdouble.errors import AgentDoubleError


def show(client: str, port: int | None, *, as_json: bool) -> None:
    """Print a client's variables as ``export`` lines or as JSON."""
    if client not in environment.CLIENTS:
        known = ", ".join(environment.CLIENTS)
        raise AgentDoubleError(f"--for takes one of {known}; {client!r} is none of them.")
    variables = environment.variables(double_at(port), client)
    if as_json:
        typer.echo(json.dumps(variables, indent=2))
        return
    typer.echo(exports(variables))


def exports(variables: Mapping[str, str]) -> str:
    """Return variables as lines for a shell."""
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())


def double_at(port: int | None, *, choice: str = "--port") -> Connection:
    """Return the running double, on ``port`` if it is given; raise AgentDoubleError.

    Inside ``agentdouble exec`` it is the double of that command. If several run, it prints that, and that ``choice`` is the option to select another.
    """
    named = os.environ.get(environment.OWN_ADDRESS)
    if port is None and named:
        from agentdouble.cli import control  # only this needs httpx

        return control.connection_at(named, environment.OWN_ADDRESS)
    doubles = running.doubles() if port is None else running.at(port)
    if not doubles:
        where = "" if port is None else f" on port {port}"
        raise AgentDoubleError(f"No double is running{where}. Start one: agentdouble serve")
    if len(doubles) > 1:
        others = ", ".join(double.url for double in doubles[1:])
        typer.echo(
            f"{len(doubles)} doubles are running; this is {doubles[0].url}. "
            f"For another ({others}), say {choice}.",
            err=True,
        )
    return doubles[0]
