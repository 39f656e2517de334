"""What a shell completes: actions, sessions, unknowns, clients, faults, nodes and services.

``agentdouble --install-completion`` sets it up. A completion that fails completes nothing, because
a shell would show its error in the middle of a command.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any

import typer

from agentdouble.cli.connections import connect
from agentdouble.core.environment import CLIENTS

Names = Callable[[typer.Context], Iterator[str]]


def quietly(names: Names) -> Callable[[typer.Context, str], list[str]]:
    """Return a function with which typer completes these names."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(Exception):
            return [name for name in names(ctx) if name.startswith(incomplete)]
        return []

    return complete


def _connected(ctx: typer.Context) -> Any:
    return connect(ctx.params.get("url"))


@quietly
def actions(_ctx: typer.Context) -> Iterator[str]:
    """Yield the platform's actions."""
    from agentdouble.control_plane.action_names import OF_THE_PLATFORM  # slow: starlette, 0.1 s

    yield from sorted(OF_THE_PLATFORM)


@quietly
def clients(_ctx: typer.Context) -> Iterator[str]:
    """Yield the clients whose variables are known."""
    yield from CLIENTS


@quietly
def unknowns(_ctx: typer.Context) -> Iterator[str]:
    """Yield each unknown with each of its alternatives: ``U-TTL-EXTENDS=sliding``."""
    from agentdouble.core import ledger  # slow: tomllib, 40 ms

    for id_, unknown in ledger.unknowns().items():
        yield from (f"{id_}={it.name}" for it in unknown.alternatives if it.built)


@quietly
def sessions(ctx: typer.Context) -> Iterator[str]:
    """Yield the ids of the living sessions."""
    for session in _connected(ctx).sessions(ctx.params.get("tool")):
        yield session["SessionId"]
        yield session["UserSessionId"]


@quietly
def fault_words(ctx: typer.Context) -> Iterator[str]:
    """Yield the kinds of faults, then operations, then the fields of the kind."""
    from agentdouble.faults import operations, parsing  # slow: pydantic

    words = ctx.params.get("words") or ()
    if not words:
        yield from parsing.KINDS
    elif len(words) == 1:
        from agentdouble.control_plane.action_names import OF_THE_PLATFORM  # slow: starlette

        yield from operations.names(sorted(OF_THE_PLATFORM))
    else:
        fields = parsing.KINDS[words[0]].model_fields
        yield from (f"{name}=" for name in fields if name not in ("kind", "operation"))


@quietly
def armed_faults(ctx: typer.Context) -> Iterator[str]:
    """Yield the ids of the armed faults."""
    for fault in _connected(ctx).admin("/_emulator/faults", {}).json()["faults"]:
        yield fault["id"]


@quietly
def nodes(ctx: typer.Context) -> Iterator[str]:
    """Yield the names of the nodes."""
    for node in _connected(ctx).admin("/_emulator/nodes", {}).json()["nodes"]:
        yield node["name"]


@quietly
def services(ctx: typer.Context) -> Iterator[str]:
    """Yield the names of the MCP services."""
    for service in _connected(ctx).all("ListMCPServices", "MCPServices"):
        yield service["Name"]
