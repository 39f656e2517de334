"""``agentdouble env``, the double that a command is for, and credentials for commands.

Commands read credentials from the environment or from files.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import typer

from agentdouble.core import environment, invoke_tool, running
from agentdouble.core.environment import Connection
from agentdouble.errors import AgentDoubleError

if TYPE_CHECKING:
    from agentdouble.cli.control import ControlPlane


def show(client: str, port: int | None, url: str | None, *, as_json: bool) -> None:
    """Print a client's variables as ``export`` lines or as JSON."""
    if port is not None and url is not None:
        raise AgentDoubleError("--port and --url both name a double: give one of them.")
    check_client(client)
    connection = double_at(port) if url is None else connection_at(url)
    variables = environment.variables(connection, client)
    if as_json:
        typer.echo(json.dumps(variables, indent=2))
        return
    typer.echo(exports(variables))


def check_client(client: str) -> None:
    """Raise AgentDoubleError if there is no client of that name."""
    if client not in environment.CLIENTS:
        clients = ", ".join(environment.CLIENTS)
        raise AgentDoubleError(f"--for takes one of {clients}; {client!r} is none of them.")


def exports(variables: Mapping[str, str]) -> str:
    """Return variables as lines for a shell."""
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())


def double_at(port: int | None, *, choice: str = "--port") -> Connection:
    """Return the running double, on ``port`` if it is given; raise AgentDoubleError.

    Inside ``agentdouble exec`` it is the double of that command. If several run, this prints which
    one it is, and that ``choice`` selects another.
    """
    named = os.environ.get(environment.OWN_ADDRESS)
    if port is None and named:
        return connection_at(named, environment.OWN_ADDRESS)
    doubles = running.doubles() if port is None else running.at(port)
    if not doubles:
        where = "" if port is None else f" on port {port}"
        raise AgentDoubleError(f"No double is running{where}. Start one: agentdouble serve")
    if len(doubles) > 1:
        others = ", ".join(double.url for double in doubles[1:])
        typer.echo(
            f"{len(doubles)} doubles are running; this is {doubles[0].url}. "
            f"For another ({others}), use {choice}.",
            err=True,
        )
    return doubles[0]


def connect(url: str | None) -> ControlPlane:
    """Return the control plane at a URL, at AGENTDOUBLE_URL, or of the running double.

    Raises AgentDoubleError if no double runs, or if there are no keys for the URL.
    """
    from agentdouble.cli.control import ControlPlane  # slow: httpx, 0.1 s

    return ControlPlane(double_at(None, choice="--url") if url is None else connection_at(url))


def connection_at(url: str, option: str = "--url") -> Connection:
    """Return how to reach the double at a URL, which ``option`` has given.

    Raises AgentDoubleError if it is not a URL, or if there are no keys for it.
    """
    refusal = AgentDoubleError(f"{option} must be an address like http://host:8000, not {url!r}.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise refusal from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise refusal
    doubles = running.at(port) if is_here(parts.hostname) else []
    if doubles:
        return doubles[0]
    keys = [os.environ.get(name) for name in (environment.ACCESS_KEY, environment.SECRET_KEY)]
    if not all(keys):
        raise AgentDoubleError(
            f"No key pair for {url}: it is not a running double of yours, and the environment has no "
            f"{environment.ACCESS_KEY} and {environment.SECRET_KEY}."
        )
    return Connection(
        url=url.rstrip("/"),
        tool_id=os.environ.get(environment.TOOL_ID, ""),
        access_key=keys[0] or "",
        secret_key=keys[1] or "",
        region=os.environ.get(environment.TOOL_REGION, invoke_tool.DEFAULT_REGION),
        token=os.environ.get(environment.TOKEN, ""),
    )


def is_here(host: str | None) -> bool:
    """Return whether a host is a loopback name of this machine."""
    return host in ("127.0.0.1", "localhost", "::1")


_HEADER = "X-API-Key"


def secret(option: str, source: str) -> str:
    """Return the content of ``env:NAME`` or ``file:PATH``; raise AgentDoubleError.

    No error shows the source if it may be the secret itself.
    """
    kind, _, where = source.partition(":")
    if kind == "env" and where:
        value = os.environ.get(where)
        if not value:
            raise AgentDoubleError(f"{option}: the environment has no {where}.")
        return value
    if kind == "file" and where:
        return read(option, where)
    raise AgentDoubleError(
        f"{option} must be env:NAME or file:PATH, not the key itself: every user of the machine "
        "can read command lines."
    )


def state(url: str | None) -> str | None:
    """Return the URL of a state; raise AgentDoubleError if it contains a password."""
    if url is None or url.startswith(("env:", "file:")):
        return None if url is None else secret("--state", url)
    parts = urlsplit(url)
    if parts.password is not None or "password" in parse_qs(parts.query):
        raise AgentDoubleError(
            "--state contains a password, and every user of the machine can read command lines: "
            "give the URL as env:NAME or file:PATH, in AGENTDOUBLE_STATE or in the settings file."
        )
    return url


def read(option: str, path: str) -> str:
    """Return the text of the file that an option names; raise AgentDoubleError without one."""
    try:
        text = Path(path).read_text("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise AgentDoubleError(f"{option}: {path} cannot be read: {reason}.") from None
    if not text:
        raise AgentDoubleError(f"{option}: {path} is empty.")
    return text


def outbound(
    bearer: str | None, api_key: str | None, *, definition: bool
) -> Mapping[str, Any] | None:
    """Return the authorizer for a backend; a ``definition`` says where the key is sent."""
    if bearer is not None and api_key is not None:
        raise AgentDoubleError("Use --bearer or --api-key, not both.")
    if bearer is not None:
        token = secret("--bearer", bearer)
        return _by_key(f"Bearer {token}", Parameter="Authorization")
    if api_key is None:
        return None
    header, separator, source = api_key.partition("=")
    if separator and ":" not in header:
        return _by_key(secret("--api-key", source), Parameter=header)
    parameter = {} if definition else {"Parameter": _HEADER}
    return _by_key(secret("--api-key", api_key), **parameter)


def _by_key(key: str, **parameter: str) -> dict[str, Any]:
    where = {"ApiKeyLocation": "Header", **parameter} if parameter else {}
    key_auth = {"ApiKeys": [{"Name": "backend", "Key": key}], **where}
    return {"AuthorizerType": "ApiKey", "Authorizer": {"KeyAuth": key_auth}}
