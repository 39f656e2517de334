"""Arguments of a tool, from its schema: the same each time."""

from __future__ import annotations

import re
from typing import Any

Json = dict[str, Any]

FORMATS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T10:20:30Z",
    "uuid": "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d",
    "email": "ann@example.com",
    "uri": "https://example.com/a?b=c&d=e",
    "byte": "aGk=",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "api.example.com",
    "time": "10:20:30Z",
}
TEXT = "a b&c/d=é"  # what must be encoded
DEEPEST = 3


class Sampler:
    """Makes values of schemas; ``definitions`` are the schemas under $defs."""

    def __init__(self, definitions: Json) -> None:
        self._definitions = definitions

    def value(self, schema: Any, depth: int = 0) -> Any:
        """Return a value of a schema."""
        node = self._whole(schema)
        if "const" in node:
            return node["const"]
        if node.get("enum"):
            return next((value for value in node["enum"] if value not in (None, "")), None)
        kind = node.get("type")
        if isinstance(kind, list):
            kind = next((name for name in kind if name != "null"), "null")
        if kind is None:
            kind = "object" if "properties" in node else "string"
        return getattr(self, f"_{kind}")(node, depth)

    def _whole(self, schema: Any) -> Json:
        """Return a schema with what it refers to, all of allOf and the first choice."""
        if not isinstance(schema, dict):
            return {}
        node = {key: value for key, value in schema.items() if key != "$ref"}
        if "$ref" in schema:
            name = schema["$ref"].removeprefix("#/$defs/")
            node = _merged(self._whole(self._definitions[name]), node)
        for member in node.pop("allOf", ()):
            node = _merged(node, self._whole(member))
        for key in ("oneOf", "anyOf"):
            members = node.pop(key, ())
            useful = [
                one for one in members if not (isinstance(one, dict) and one.get("type") == "null")
            ]
            if useful:
                node = _merged(node, self._whole(useful[0]))
        return node

    def _object(self, node: Json, depth: int) -> Json:
        required = node.get("required", ())
        properties = node.get("properties", {})
        chosen = [
            name
            for index, name in enumerate(properties)
            if name in required or (depth < DEEPEST and index < 8)
        ]
        values = {name: self.value(properties[name], depth + 1) for name in chosen}
        # a form cannot say that an object is empty
        found = {name: value for name, value in values.items() if value != {} or name in required}
        if not properties and isinstance(node.get("additionalProperties"), dict):
            found["key"] = self.value(node["additionalProperties"], depth + 1)
        return found

    def _array(self, node: Json, depth: int) -> list[Any]:
        count = (
            max(1, node.get("minItems", 1))
            if node.get("uniqueItems")
            else max(2, node.get("minItems", 2))
        )
        count = min(count, node.get("maxItems", count))
        return [self.value(node.get("items", {}), depth + 1) for _ in range(int(count))]

    def _string(self, node: Json, _depth: int) -> str:
        if node.get("format") in FORMATS:
            return FORMATS[node["format"]]
        if node.get("contentEncoding") == "base64":
            return "aGk="
        text = TEXT
        if "pattern" in node:
            text = next(
                (
                    one
                    for one in (TEXT, "abc", "123", "A1", "2026-01-31")
                    if _matches(node["pattern"], one)
                ),
                "abc",
            )
        text += "x" * int(node.get("minLength", 0) - len(text))
        return text[: int(node.get("maxLength", len(text)))] or "x"

    def _integer(self, node: Json, _depth: int) -> int:
        lowest = node.get("minimum", node.get("exclusiveMinimum", 0) + 1)
        return int(
            min(max(7, lowest), node.get("maximum", node.get("exclusiveMaximum", 10**9) - 1))
        )

    def _number(self, node: Json, depth: int) -> float:
        return self._integer(node, depth) if "maximum" in node or "minimum" in node else 2.5

    def _boolean(self, _node: Json, _depth: int) -> bool:
        return True

    def _null(self, _node: Json, _depth: int) -> None:
        return None


def _merged(one: Json, other: Json) -> Json:
    properties = {**one.get("properties", {}), **other.get("properties", {})}
    required = [*one.get("required", ()), *other.get("required", ())]
    return {
        **one,
        **other,
        **({"properties": properties} if properties else {}),
        **({"required": required} if required else {}),
    }


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True
