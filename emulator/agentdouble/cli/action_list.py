"""``agentdouble call --list``: the actions of a double, or the fields of one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import typer

from agentdouble.cli import connections
from agentdouble.core.terminal import print_table
from agentdouble.errors import AgentDoubleError

_PATH = "/?Action="


def show(action: str | None, url: str | None, *, as_json: bool) -> None:
    """Print the actions that a double has, or the fields of an action.

    They are those of its OpenAPI document. Without a double, print the names of the platform's.
    """
    try:
        document = connections.connect(url).admin("/openapi.json", {}).json()
    except AgentDoubleError as error:
        if action is not None or url is not None:
            raise
        from agentdouble.control_plane.action_names import OF_THE_PLATFORM  # slow: starlette, 0.1 s

        typer.echo(f"These are the platform's names. {error}", err=True)
        rows = [{"Action": name} for name in sorted(OF_THE_PLATFORM)]
        _print(("Action",), rows, as_json=as_json)
        return
    operations = {
        path.removeprefix(_PATH).partition("&")[0]: item["post"]
        for path, item in document["paths"].items()
        if path.startswith(_PATH)
    }
    if action is None:
        rows = [{"Action": name, "What it does": it["summary"]} for name, it in operations.items()]
        _print(("Action", "What it does"), rows, as_json=as_json)
    elif action in operations:
        fields = list(_fields(operations[action], document))
        _print(("Field", "Type", "Required"), fields, as_json=as_json)
    else:
        raise AgentDoubleError(f"{action} is an action of the platform that this double lacks.")


def _print(columns: tuple[str, ...], rows: list[dict[str, str]], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(rows))
    else:
        print_table(columns, rows)


def _fields(operation: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    schema = _resolved(schema, document)
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        kind = _kind(field, document)
        yield {"Field": name, "Type": kind, "Required": "yes" if name in required else ""}


def _resolved(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _kind(schema: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """Return the type of a field in a few words."""
    resolved = _resolved(schema, document)
    if "anyOf" in resolved:
        kinds = (_kind(it, document) for it in resolved["anyOf"] if it.get("type") != "null")
        return " or ".join(dict.fromkeys(kinds))
    values = resolved.get("enum") or ([resolved["const"]] if "const" in resolved else None)
    if values:
        return " or ".join(map(json.dumps, values))
    if resolved.get("type") == "array":
        return f"list of {_kind(resolved.get('items', {}), document)}"
    if "properties" in resolved:
        return f"object with {', '.join(resolved['properties'])}"
    return str(resolved.get("type", "any"))
