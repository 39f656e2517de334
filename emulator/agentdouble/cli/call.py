"""``agentdouble call``: any action of the control plane, with fields from the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from agentdouble.cli import action_list, completion, connections
from agentdouble.cli.options import Url
from agentdouble.core.suggestions import did_you_mean
from agentdouble.core.terminal import help_text
from agentdouble.errors import AgentDoubleError

# Texts that hold JSON: as objects the platform refuses them.
_TEXTS = ("Configuration", "OperationPayload", "ProtocolConvertConfiguration", "RawConfig")

EXAMPLES = help_text("""
Examples:
  agentdouble call --list                  the actions
  agentdouble call --list CreateTool       the fields of one
  agentdouble call ListTools
  agentdouble call CreateTool Name=research ToolType=CodeEnv
  agentdouble call GetSessionLogs ToolId=t-sandbox SessionId=s-...
  agentdouble call InvokeTool ToolId=t-sandbox UserSessionId=s1 \\
    OperationType=RunCode OperationPayload='{"code": "print(6 * 7)"}'
  agentdouble call CreateRuntime Name=greeter RoleName=local \\
    ArtifactType=file ArtifactUrl="file://$PWD?application=greeter:app" \\
    Envs='[{"Key": "A", "Value": "b"}]'
  agentdouble call CreateRuntime ... \\
    AuthorizerConfiguration.KeyAuth.ApiKey=@key.txt

Values are JSON or text; @FILE reads a file. A name with dots sets a field of an object. Put text
that looks like JSON in double quotes: Name='"42"'.

Exit codes:
  0  done
  2  there is no double, or it refused
""")


def call(
    action: Annotated[
        str | None,
        typer.Argument(
            metavar="ACTION",
            help="An action of the control plane, as ListTools.",
            autocompletion=completion.actions,
        ),
    ] = None,
    fields: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help="Fields of its request.")
    ] = None,
    url: Url = None,
    listing: Annotated[
        bool, typer.Option("--list", help="List the actions, or the fields of ACTION.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in one line.")] = False,
) -> None:
    """Call an action of the control plane and print its result."""
    if action is not None:
        require_action(action)
    if listing:
        action_list.show(action, url, as_json=as_json)
        return
    if action is None:
        raise AgentDoubleError("Name an action. See: agentdouble call --list")
    body = read_fields(fields or ())
    result, unused = connections.connect(url).call_and_note(action, body)
    typer.echo(json.dumps(result, indent=None if as_json else 2))
    if unused:
        see = f"See: agentdouble call --list {action}"
        typer.echo(f"Warning: the double does not use {unused}. {see}", err=True)


def require_action(name: str) -> None:
    """Raise AgentDoubleError if the platform has no action of that name."""
    from agentdouble.control_plane.action_names import OF_THE_PLATFORM  # slow: starlette, 0.1 s

    if name not in OF_THE_PLATFORM:
        hint = did_you_mean(name, sorted(OF_THE_PLATFORM), most=3)
        raise AgentDoubleError(
            f"The platform has no action {name!r}.{hint} See: agentdouble call --list"
        )


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
        written = _content(path, text[1:]) if text.startswith("@") else text
        parsed = value(written)
        is_text = name in _TEXTS and isinstance(parsed, (dict, list))
        inner[name] = written if is_text else parsed
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
