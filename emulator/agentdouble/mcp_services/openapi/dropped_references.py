"""What a schema says without references that are dropped, because they lead nowhere or in a circle.

Any value is allowed in place of such a reference. So what would refuse values because of it must
go, too: ``not`` anything refuses all values, and ``oneOf`` with anything those of its others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentdouble.mcp_services.openapi.definition import Json, mapping
from agentdouble.mcp_services.openapi.subschemas import LISTS, MAPS, ONE

_SAY_NOTHING = frozenset(("title", "description", "default", "deprecated", "examples"))


class Reference(dict[str, Any]):
    """A reference; it is dropped if it is empty."""


def is_dropped(schema: Any) -> bool:
    """Return whether a schema allows any value because a reference is dropped."""
    if not isinstance(schema, dict):
        return False
    if isinstance(schema, Reference):
        return not schema
    below = {key: value for key, value in schema.items() if key not in _SAY_NOTHING}
    if below.keys() == {"allOf"}:
        return all(map(is_dropped, below["allOf"]))
    return below.keys() == {"anyOf"} and any(map(is_dropped, below["anyOf"]))


def loosen(schema: Any) -> None:
    """Change a schema so that it refuses no value because of a dropped reference in it."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict):
            continue
        waiting += _below(node)
        if is_dropped(node.get("not")):
            del node["not"]
        if is_dropped(node.get("contains")):
            del node["contains"]
        if is_dropped(node.get("if")):
            for key in ("if", "then", "else"):
                node.pop(key, None)
        beside = [member for key in ("allOf", "anyOf", "oneOf") for member in node.get(key, ())]
        if any(map(is_dropped, beside)):
            node.pop("unevaluatedProperties", None)
            node.pop("unevaluatedItems", None)
        if any(map(is_dropped, node.get("oneOf", ()))):
            choices = {"anyOf": node.pop("oneOf")}
            node.update(
                {"allOf": [*node.get("allOf", ()), choices]} if "anyOf" in node else choices
            )


def _below(node: Json) -> Iterator[Any]:
    for key in LISTS:
        yield from node.get(key, ())
    for key in MAPS:
        yield from mapping(node.get(key)).values()
    for key in ONE:
        yield node.get(key)
