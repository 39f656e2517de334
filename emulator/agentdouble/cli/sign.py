"""``agentdouble sign``: an action of the control plane as a signed command of curl."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from agentdouble.cli import call, completion, connections
from agentdouble.cli.options import Url
from agentdouble.core.terminal import help_text
from agentdouble.core.urls import is_https

EXAMPLES = help_text("""
Examples:
  agentdouble sign ListTools
  agentdouble sign CreateTool Name=research ToolType=CodeEnv
  agentdouble sign InvokeTool ToolId=t-sandbox UserSessionId=s1 \\
    OperationType=RunCode OperationPayload='{"code": "print(6 * 7)"}'
  eval "$(agentdouble sign ListTools)"     sends it

The command has the access key and a signature, which is valid for 15 minutes, but no secret key.
Fields are those of agentdouble call.

Exit codes:
  0  printed
  2  there is no double, or no key pair for it
""")


def sign(
    action: Annotated[
        str,
        typer.Argument(
            metavar="ACTION",
            help="An action of the control plane, as ListTools.",
            autocompletion=completion.actions,
        ),
    ],
    fields: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help="Fields of its request.")
    ] = None,
    url: Url = None,
) -> None:
    """Print a signed curl command for an action of the control plane."""
    call.require_action(action)
    plane = connections.connect(url)
    request = plane.signed(action, call.read_fields(fields or ()))
    words = [["curl", request.url]]
    words += [["--cacert", plane.ca_file]] if plane.ca_file and is_https(plane.url) else []
    words += [["-H", f"{name}: {value}"] for name, value in request.headers.items()]
    words += [["--data-binary", request.body.decode()]]
    typer.echo(" \\\n  ".join(map(shlex.join, words)))
