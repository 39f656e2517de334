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
    state = _request(url, "GET")
    if as_json:
        typer.echo(json.dumps(state, indent=2))
        return
    rows = [
        {"Id": f["id"], "Fault": f["described"], "Calls": f["calls"], "Fired": f["fired"]}
        for f in state["faults"]
    ]
    sessions.show(("Id", "Fault", "Calls", "Fired"), rows)


def arm(words: Sequence[str], url: str | None, *, as_json: bool) -> None:
    """Arm a fault and print its id."""
    document = _document(words)
    try:
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        raise AgentDoubleError(f"The fault has a value that is not JSON: {error}.") from None
    armed = _request(url, "POST", body=document)
    typer.echo(json.dumps(armed) if as_json else f"{armed['id']}: {armed['described']}")


def release(id_: str, url: str | None, *, as_json: bool) -> None:
    """Release the calls that a fault holds."""
    fault = _request(url, "POST", f"/{quote(id_, safe='')}/release")
    typer.echo(json.dumps(fault) if as_json else f"The calls that {fault['id']} holds go on.")


def remove(id_: str | None, url: str | None, *, everything: bool, as_json: bool) -> None:
    """Remove one fault, or all."""
    if (id_ is None) != everything:
        raise AgentDoubleError("Name a fault (such as f1), or use --all.")
    if id_ is None:
        removed = _request(url, "DELETE")
        message = f"{len(removed['faults'])} faults are removed."
    else:
        removed = _request(url, "DELETE", f"/{quote(id_, safe='')}")
        message = f"{removed['id']} is removed; it has happened {removed['fired']} times."
    typer.echo(json.dumps(removed) if as_json else message)


def _request(url: str | None, method: str, path: str = "", body: Any = None) -> Any:
    """Call a route below ``/_emulator/faults`` and return its JSON."""
    return control.connect(url).admin(_FAULTS + path, {}, method=method, body=body).json()


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
