"""``agentdouble nodes``: the nodes of a double and their load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from agentdouble.cli import completion, connections
from agentdouble.cli.options import Json, Url, command_group, print_rows, seconds
from agentdouble.core.terminal import help_text
from agentdouble.errors import AgentDoubleError

_NODES = "/_emulator/nodes"
_COLUMNS = ("name", "state", "sessions", "capacity", "free", "busy", "version", "reason")

_NODES_EXAMPLES = help_text("""
Examples:
  agentdouble serve --nodes ray://10.0.0.1:6379
  agentdouble nodes list
  agentdouble nodes drain worker-2-3fa9c1 --deadline 10m

Exit codes:
  0  done
  2  there is no double, or it refused
""")

nodes_app = command_group("List and drain the nodes of a running double.", _NODES_EXAMPLES)


@nodes_app.command("list", epilog=_NODES_EXAMPLES)
def list_nodes(url: Url = None, as_json: Json = False) -> None:
    """List the nodes with their state, sessions and load."""
    _print_nodes(connections.connect(url).admin(_NODES, {}).json()["nodes"], as_json=as_json)


@nodes_app.command(epilog=_NODES_EXAMPLES)
def drain(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NODE", help="The name of the node.", autocompletion=completion.nodes
        ),
    ],
    deadline: Annotated[
        str, typer.Option(metavar="TIME", help="When its sessions end: 90s, 30m or 1h.")
    ] = "30m",
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Place no more sessions on a node, so that it can end.

    It ends when it has none, or at the deadline.
    """
    deadline_s = seconds(deadline)
    if deadline_s < 0:
        raise AgentDoubleError(f"--deadline is a time from now, such as 30m, not {deadline!r}.")
    body = {"deadline_s": deadline_s}
    answer = connections.connect(url).admin(f"{_NODES}/{name}/drain", {}, method="POST", body=body)
    _print_nodes(answer.json()["nodes"], as_json=as_json)


def _print_nodes(nodes: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    rows = [{name: "" if v is None else v for name, v in node.items()} for node in nodes]
    none = "This double runs its sessions itself. With nodes: agentdouble serve --nodes ray://..."
    print_rows(_COLUMNS, rows, nodes, none=none, as_json=as_json)
