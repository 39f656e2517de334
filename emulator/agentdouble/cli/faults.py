"""``agentdouble faults arm | list | release | remove``: the faults of a running double."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

import typer

from agentdouble.cli import call, completion, connections
from agentdouble.cli.options import Json, Url, command_group, print_rows
from agentdouble.core.terminal import help_text
from agentdouble.errors import AgentDoubleError

_FAULTS = "/_emulator/faults"
_SHAPE = (
    "A fault is KIND OPERATION NAME=VALUE ..., or one JSON object. "
    "See: agentdouble faults arm --help"
)

_EXAMPLES = help_text("""
Examples:
  agentdouble faults arm fail InvokeTool status=503 nth=2
  agentdouble faults arm delay InvokeTool      it waits for a release
  agentdouble faults arm '{"kind": "reset", "operation": "/run_sse"}'
  agentdouble faults list
  agentdouble faults release f1                the waiting calls continue
  agentdouble faults remove f1

Exit codes:
  0  done
  2  there is no double, or it refused
""")

_FAULT = typer.Argument(metavar="FAULT", help="Its id, f1.", autocompletion=completion.armed_faults)
Fault = Annotated[str, _FAULT]

faults_app = command_group("Arm, list, release and remove faults of a running double.", _EXAMPLES)


@faults_app.command("list", epilog=_EXAMPLES)
def list_(url: Url = None, as_json: Json = False) -> None:
    """List the armed faults, with how often each has happened."""
    state = _request(url, "GET")
    rows = [
        {"Id": f["id"], "Fault": f["described"], "Calls": f["calls"], "Fired": f["fired"]}
        for f in state["faults"]
    ]
    none = "No fault is armed. Arm one: agentdouble faults arm KIND OPERATION"
    print_rows(("Id", "Fault", "Calls", "Fired"), rows, state, none=none, as_json=as_json)


@faults_app.command(epilog=_EXAMPLES)
def arm(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND OPERATION [NAME=VALUE]... | JSON",
            help="Its kind, operation and fields; a VALUE is JSON or text.",
            autocompletion=completion.fault_words,
        ),
    ],
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Arm a fault for coming calls, and print its id."""
    document = _document(words)
    try:
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        raise AgentDoubleError(f"The fault has a value that is not JSON: {error}.") from None
    armed = _request(url, "POST", body=document)
    typer.echo(json.dumps(armed) if as_json else f"{armed['id']}: {armed['described']}")


@faults_app.command(epilog=_EXAMPLES)
def release(fault: Fault, url: Url = None, as_json: Json = False) -> None:
    """Release the calls that a fault holds; later ones wait again."""
    released = _request(url, "POST", f"/{quote(fault, safe='')}/release")
    typer.echo(json.dumps(released) if as_json else f"The calls that {released['id']} holds go on.")


@faults_app.command(epilog=_EXAMPLES)
def remove(
    fault: Annotated[str | None, _FAULT] = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove every fault.")] = False,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Remove a fault; the calls that it holds continue."""
    if (fault is None) != everything:
        raise AgentDoubleError("Name a fault (such as f1), or use --all.")
    if fault is None:
        removed = _request(url, "DELETE")
        message = f"{len(removed['faults'])} faults are removed."
    else:
        removed = _request(url, "DELETE", f"/{quote(fault, safe='')}")
        message = f"{removed['id']} is removed; it has happened {removed['fired']} times."
    typer.echo(json.dumps(removed) if as_json else message)


def _request(url: str | None, method: str, path: str = "", body: Any = None) -> Any:
    """Call a route below ``/_emulator/faults`` and return its JSON."""
    return connections.connect(url).admin(_FAULTS + path, {}, method=method, body=body).json()


def _document(words: Sequence[str]) -> Mapping[str, Any]:
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            document: Mapping[str, Any] = json.loads(words[0])
        except (ValueError, RecursionError) as error:
            raise AgentDoubleError(f"The fault is not valid JSON: {error}.") from None
        return document
    if len(words) < 2:
        raise AgentDoubleError(_SHAPE)
    kind, operation, *fields = words
    return {"kind": kind, "operation": operation, **dict(map(_field, fields))}


def _field(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not (name and separator):
        raise AgentDoubleError(f"{text!r} is not NAME=VALUE. {_SHAPE}")
    return name, call.value(value)
