"""The double that a command is for: the running one, or the one at a URL, with its keys."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import typer

from agentdouble.core import environment, invoke_tool, running_doubles
from agentdouble.core.environment import DoubleConnection
from agentdouble.errors import AgentDoubleError

if TYPE_CHECKING:
    from agentdouble.cli.control import ControlPlaneClient


def double_at(port: int | None) -> DoubleConnection:
    """Return the running double, on ``port`` if it is given; raise AgentDoubleError.

    Inside ``agentdouble exec`` it is the double of that command. If several run, this prints which
    one it is, and that ``--url`` selects another: each command has that option.
    """
    named = os.environ.get(environment.OWN_ADDRESS)
    if port is None and named:
        return connection_at(named, environment.OWN_ADDRESS)
    doubles = running_doubles.doubles() if port is None else running_doubles.at(port)
    if not doubles:
        where, elsewhere = "", ", or name one elsewhere with --url"
        if port is not None:
            where, elsewhere = f" on port {port}", ""
        message = f"No double is running{where}. Start one: agentdouble serve{elsewhere}"
        raise AgentDoubleError(message)
    if len(doubles) > 1:
        others = ", ".join(double.url for double in doubles[1:])
        typer.echo(
            f"{len(doubles)} doubles are running; this is {doubles[0].url}. "
            f"For another ({others}), use --url.",
            err=True,
        )
    return doubles[0]


def connect(url: str | None) -> ControlPlaneClient:
    """Return the control plane at a URL, at AGENTDOUBLE_URL, or of the running double.

    Raises AgentDoubleError if no double runs.
    """
    from agentdouble.cli.control import ControlPlaneClient  # slow: httpx, 0.1 s

    return ControlPlaneClient(double_at(None) if url is None else connection_at(url))


def connection_at(url: str, option: str = "--url") -> DoubleConnection:
    """Return how to reach the double at a URL, which ``option`` has given.

    The keys of another's double are those in the environment, if there are any. Raises
    AgentDoubleError if it is not a URL.
    """
    refusal = AgentDoubleError(f"{option} must be an address like http://host:8000, not {url!r}.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise refusal from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise refusal
    doubles = running_doubles.at(port) if running_doubles.is_here(parts.hostname) else []
    if doubles:
        return doubles[0]
    return DoubleConnection(
        url=url.rstrip("/"),
        tool_id=os.environ.get(environment.TOOL_ID, ""),
        access_key=os.environ.get(environment.ACCESS_KEY, ""),
        secret_key=os.environ.get(environment.SECRET_KEY, ""),
        region=os.environ.get(environment.TOOL_REGION, invoke_tool.DEFAULT_REGION),
        token=os.environ.get(environment.TOKEN, ""),
    )
