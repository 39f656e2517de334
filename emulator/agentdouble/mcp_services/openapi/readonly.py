"""Which properties of an object are read-only, wherever its parts say so."""

from __future__ import annotations

from typing import Any

from agentdouble.mcp_services.openapi.definition import Json
from agentdouble.mcp_services.openapi.documents import Document, step


class ReadOnly:
    """Finds read-only properties, by references and allOf too; each target is looked at once."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._known: dict[str, frozenset[str]] = {}

    def names(self, schema: Json, place: str) -> frozenset[str]:
        """Return the names of an object's properties that are read-only."""
        found = {
            name
            for name, one in _mapping(schema.get("properties")).items()
            if isinstance(one, dict) and self._is_read_only(one, place)
        }
        members = schema.get("allOf")
        for index, member in enumerate(members if isinstance(members, list) else ()):
            found |= self._of_member(member, step(place, "allOf", index))
        return frozenset(found)

    def _of_member(self, member: Any, place: str) -> frozenset[str]:
        if not isinstance(member, dict):
            return frozenset()
        if not isinstance(member.get("$ref"), str):
            return self.names(member, place)
        target, where = self._document.followed(member, place)
        if where not in self._known:
            self._known[where] = frozenset()  # one that has itself as a part
            self._known[where] = self.names(target, where) if isinstance(target, dict) else _NONE
        return self._known[where]

    def _is_read_only(self, schema: Json, place: str) -> bool:
        if schema.get("readOnly") is True:
            return True
        target, _ = self._document.followed(schema, place)
        return isinstance(target, dict) and target.get("readOnly") is True


_NONE: frozenset[str] = frozenset()


def _mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
