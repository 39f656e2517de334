"""Properties that only the server sets: ``readOnly``, also behind references and in allOf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentdouble.mcp_services.openapi.definition import Document, Json, listed, mapping, step

_NONE: frozenset[str] = frozenset()
_Names = dict[str, frozenset[str]]
_Own = Callable[[Json, str], list[str]]


class ReadOnly:
    """The names of the read-only properties of a document's objects.

    An object's properties are those of all members of its allOf, and those that every member of its
    anyOf or oneOf has.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._names: _Names = {}  # of schemas, by place
        self._mentioned: _Names = {}

    def names(self, schema: Any, location: str) -> frozenset[str]:
        """Return the names of an object's read-only properties."""
        return self._collected(schema, location, self._names, self._own_names)

    def needed(self, schema: Any, location: str, hidden: frozenset[str]) -> frozenset[str]:
        """Return those of ``hidden`` that the schema mentions and does not hide itself."""
        if not hidden:
            return _NONE
        mentioned = self._collected(schema, location, self._mentioned, _own_mentioned)
        return (hidden & mentioned) - self.names(schema, location)

    def _collected(self, schema: Any, location: str, known: _Names, own: _Own) -> frozenset[str]:
        """Return the names of a schema and of its members; ``known`` has those that are found.

        What schemas that contain each other add is not known in the first round.
        """
        before: _Names = {}
        while True:
            found: _Names = {}
            names = self._round(schema, location, own, (known, found, before))
            if found == before:
                known.update(found)
                return names
            before = found

    def _round(
        self, schema: Any, location: str, own: _Own, rounds: tuple[_Names, _Names, _Names]
    ) -> frozenset[str]:
        known, current, before = rounds
        node, where = schema, location
        members = []
        if isinstance(node, dict) and "$ref" in node:
            node, where = self._document.followed_if_possible(schema, location)
            if self._document.version == "3.1" and len(schema) > 1:  # its neighbours count
                members, node, where = [(node, where)], schema, location
        if not isinstance(node, dict):
            return _NONE
        if where in known:
            return known[where]
        if where in current:
            return current[where]
        current[where] = before.get(where, _NONE)
        members += [
            (member, step(where, "allOf", index))
            for index, member in enumerate(listed(node.get("allOf")))
        ]
        found = frozenset(own(node, where))
        for member, at in members:
            found |= self._round(member, at, own, rounds)
        for key in ("anyOf", "oneOf"):
            choices = [
                self._round(member, step(where, key, index), own, rounds)
                for index, member in enumerate(listed(node.get(key)))
                if mapping(member).get("type") != "null"
            ]
            if choices:
                found |= frozenset.intersection(*choices)
        current[where] = found
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
