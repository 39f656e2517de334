"""Properties that only the server sets: ``readOnly``, also behind references and in allOf."""

from __future__ import annotations

from typing import Any

from agentdouble.mcp_services.openapi.definition import Document, Json, listed, mapping, step

_NONE: frozenset[str] = frozenset()


class ReadOnly:
    """The names of the read-only properties of a document's objects.

    An object's properties are those of all members of its allOf, and those that every member of its
    anyOf or oneOf has.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._names: dict[str, frozenset[str]] = {}  # of referenced schemas, by place
        self._mentioned: dict[str, frozenset[str]] = {}

    def names(self, schema: Any, location: str) -> frozenset[str]:
        """Return the names of an object's read-only properties."""
        return self._collected(schema, location, self._names, self._own_names)

    def needed(self, schema: Any, location: str, hidden: frozenset[str]) -> frozenset[str]:
        """Return those of ``hidden`` that the schema mentions and does not hide itself."""
        if not hidden:
            return _NONE
        mentioned = self._collected(schema, location, self._mentioned, _own_mentioned)
        return (hidden & mentioned) - self.names(schema, location)

    def _collected(
        self, schema: Any, location: str, known: dict[str, frozenset[str]], own: Any
    ) -> frozenset[str]:
        node, where = self._document.followed_if_possible(schema, location)
        if not isinstance(node, dict):
            return _NONE
        if where in known:
            return known[where]
        known[where] = _NONE  # what a schema that contains itself adds is found where it began
        found = frozenset(own(node, where))
        for index, member in enumerate(listed(node.get("allOf"))):
            found |= self._collected(member, step(where, "allOf", index), known, own)
        for key in ("anyOf", "oneOf"):
            members = [
                self._collected(member, step(where, key, index), known, own)
                for index, member in enumerate(listed(node.get(key)))
                if mapping(member).get("type") != "null"
            ]
            if members:
                found |= frozenset.intersection(*members)
        known[where] = found
        return found

    def _own_names(self, node: Json, where: str) -> list[str]:
        return [
            name
            for name, member in mapping(node.get("properties")).items()
            if self._is_read_only(member, step(where, "properties", name), set())
        ]

    def _is_read_only(self, schema: Any, location: str, above: set[str]) -> bool:
        if mapping(schema).get("readOnly") is True:
            return True
        node, where = self._document.followed_if_possible(schema, location)
        if not isinstance(node, dict) or where in above:
            return False
        if node.get("readOnly") is True:
            return True
        below = above | {where}
        if any(
            self._is_read_only(member, step(where, "allOf", index), below)
            for index, member in enumerate(listed(node.get("allOf")))
        ):
            return True
        choices = [
            (member, step(where, key, index))
            for key in ("anyOf", "oneOf")
            for index, member in enumerate(listed(node.get(key)))
            if mapping(member).get("type") != "null"
        ]
        return bool(choices) and all(self._is_read_only(*choice, below) for choice in choices)


def _own_mentioned(node: Json, _where: str) -> list[str]:
    """Return the names of the properties that a schema describes or requires."""
    required = [name for name in listed(node.get("required")) if isinstance(name, str)]
    return [*mapping(node.get("properties")), *required]
