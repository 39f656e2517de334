"""``agentdouble call``: any action of the control plane, with fields from the command line."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from agentdouble.cli import connections
from agentdouble.cli.options import Url, formatted
from agentdouble.errors import AgentDoubleError

EXAMPLES = formatted("""
[bold]Examples[/bold]

  agentdouble call ListTools

  agentdouble call CreateTool Name=research ToolType=CodeEnv

  agentdouble call GetSessionLogs ToolId=t-sandbox SessionId=s-0123456789abcdef0123

  agentdouble call CreateRuntime Name=greeter RoleName=local ArtifactType=file \\
    ArtifactUrl="file://$PWD?application=greeter:app" Envs='\\[{"Key": "A", "Value": "b"}]'

  agentdouble call CreateRuntime ... AuthorizerConfiguration.KeyAuth.ApiKey=@key.txt

[bold]Values[/bold]  are JSON or text; @FILE reads a file. A name with dots sets a field of an object.
Put text that looks like JSON in double quotes: Name='"42"'.

[bold]Exit codes[/bold]  0: done, 2: there is no double, or it refused.
""")


def call(
    action: Annotated[str, typer.Argument(help="An action of the control plane, as ListTools.")],
    fields: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", help="Fields of its request.")
    ] = None,
    url: Url = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in one line.")] = False,
) -> None:
    """Call any action of a running double's control plane, and print its result."""
    from agentdouble.control_plane.action_names import OF_THE_PLATFORM  # slow: starlette, 0.1 s

    if action not in OF_THE_PLATFORM:
        near = difflib.get_close_matches(action, sorted(OF_THE_PLATFORM), n=3)
        hint = f"Did you mean {' or '.join(near)}?" if near else "See: agentdouble call --help"
        raise AgentDoubleError(f"The platform has no action {action!r}. {hint}")
    result = connections.connect(url).call(action, **read_fields(fields or ()))
    typer.echo(json.dumps(result, indent=None if as_json else 2))


def read_fields(words: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a request from ``NAME=VALUE`` texts; raise AgentDoubleError."""
    body: dict[str, Any] = {}
    for word in words:
        path, separator, text = word.partition("=")
        *parents, name = path.split(".")
        if not (separator and name and all(parents)):
            raise AgentDoubleError(f"{word!r} is not NAME=VALUE. See: agentdouble call --help")
        inner = body
        for parent in parents:
            inner = inner.setdefault(parent, {})
            if not isinstance(inner, dict):
                raise AgentDoubleError(f"{path}: {parent} already has another value.")
        inner[name] = value(_content(path, text[1:]) if text.startswith("@") else text)
    return body


def value(text: str) -> Any:
    """Return the value of JSON, or any other text as it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _content(name: str, path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise AgentDoubleError(f"{name}: {path} cannot be read: {reason}.") from None
