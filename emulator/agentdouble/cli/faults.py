"""``agentdouble faults arm | list | release | remove``: the faults of a running double."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import typer

from agentdouble.cli import call, control, sessions
from agentdouble.errors import AgentDoubleError

_FAULTS = "/_emulator/faults"
_SHAPE = (
    "A fault is KIND OPERATION NAME=VALUE ..., or one JSON object. "
    "See: agentdouble faults arm --help"
)


def show_all(url: str | None, *, as_json: bool) -> None:
    """Print the armed faults."""
    shown = _asked(url, "GET")
    if as_json:
        typer.echo(json.dumps(shown, indent=2))
        return
    rows = [
        {"Id": one["id"], "Fault": one["described"], "Calls": one["calls"], "Fired": one["fired"]}
        for one in shown["faults"]
    ]
    sessions.show(("Id", "Fault", "Calls", "Fired"), rows)


def arm(words: Sequence[str], url: str | None, *, as_json: bool) -> None:
    """Arm a fault and print its id."""
    document = _document(words)
    try:
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        raise AgentDoubleError(f"The fault has a value that JSON cannot have: {error}.") from None
    armed = _asked(url, "POST", body=document)
    typer.echo(json.dumps(armed) if as_json else f"{armed['id']}: {armed['described']}")


def release(id_: str, url: str | None, *, as_json: bool) -> None:
    """Release the calls that a fault holds."""
    shown = _asked(url, "POST", f"/{quote(id_, safe='')}/release")
    typer.echo(json.dumps(shown) if as_json else f"The calls that {shown['id']} holds go on.")


def remove(id_: str | None, url: str | None, *, everything: bool, as_json: bool) -> None:
    """Remove one fault, or every one."""
    if (id_ is None) != everything:
        raise AgentDoubleError("Say which fault: an id such as f1, or --all.")
    if id_ is None:
        gone = _asked(url, "DELETE")
        said = f"{len(gone['faults'])} faults are removed."
    else:
        gone = _asked(url, "DELETE", f"/{quote(id_, safe='')}")
        said = f"{gone['id']} is removed; it has happened {gone['fired']} times."
    typer.echo(json.dumps(gone) if as_json else said)


def _asked(url: str | None, method: str, path: str = "", body: Any = None) -> Any:
    """Return what a route below ``/_emulator/faults`` answers."""
    return control.connect(url).own(_FAULTS + path, {}, method=method, body=body).json()


def _document(words: Sequence[str]) -> Mapping[str, Any]:
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            document: Mapping[str, Any] = json.loads(words[0])
        except (ValueError, RecursionError) as error:
            raise AgentDoubleError(f"The fault is no JSON: {error}.") from None
        return document
    if len(words) < 2:
        raise AgentDoubleError(_SHAPE)
    kind, operation, *fields = words
    return {"kind": kind, "operation": operation, **dict(map(_field, fields))}


def _field(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not (name and separator):
        raise AgentDoubleError(f"{text!r} is no NAME=VALUE. {_SHAPE}")
    return name, call.value(value)
