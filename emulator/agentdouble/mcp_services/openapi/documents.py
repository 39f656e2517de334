"""A definition's document: its JSON pointers, its references and its read-only properties.

A definition is one document: a reference to another document is refused.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services.openapi.definition import Json, mapping


class Document:
    """A document and the version of its format: ``"2.0"``, ``"3.0"`` or ``"3.1"``."""

    def __init__(self, root: Json, version: str) -> None:
        self.root = root
        self.version = version

    def target(self, reference: str, place: str) -> Any:
        """Return the target of a reference; ``place`` is where the reference is."""
        if not reference.startswith("#"):
            raise DefinitionError(
                f"the reference {reference!r} leads out of the document, and what is outside is "
                "not read. Put everything into one document",
                place=place,
            )
        if reference != "#" and not reference.startswith("#/"):
            raise DefinitionError(
                f"the reference {reference!r} names an anchor; only paths like "
                "'#/components/schemas/Name' are followed",
                place=place,
            )
        return self._at(reference, place)

    def _at(self, reference: str, place: str) -> Any:
        found: Any = self.root
        for part in steps(reference):
            try:
                found = found[int(part)] if isinstance(found, list) else found[part]
            except (KeyError, IndexError, ValueError, TypeError):
                raise DefinitionError(
                    f"the reference {reference!r} leads nowhere: there is no {part!r}", place=place
                ) from None
        return found

    def followed(self, node: Any, place: str) -> tuple[Any, str]:
        """Return the value at the end of a chain of references, and its place."""
        seen: list[str] = []
        while isinstance(node, dict) and isinstance(node.get("$ref"), str):
            reference = node["$ref"]
            if reference in seen:
                circle = " -> ".join([*seen[seen.index(reference) :], reference])
                raise DefinitionError(f"references go round in a circle: {circle}", place=place)
            seen.append(reference)
            node, place = self.target(reference, place), reference
        return node, place


def step(place: str, *keys: str | int) -> str:
    """Return the JSON pointer of a place below a place."""
    return place + "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in keys)


def steps(reference: str) -> list[str]:
    """Return the keys of a reference within a document."""
    parts = unquote(reference[1:]).split("/")[1:]
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


class ReadOnly:
    """Finds read-only properties, also through references and allOf; reads each target once."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._known: dict[str, frozenset[str]] = {}

    def names(self, schema: Json, place: str) -> frozenset[str]:
        """Return the names of an object's read-only properties."""
        found = {
            name
            for name, one in mapping(schema.get("properties")).items()
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
            self._known[where] = frozenset()  # for a schema that contains itself
            self._known[where] = self.names(target, where) if isinstance(target, dict) else _NONE
        return self._known[where]

    def _is_read_only(self, schema: Json, place: str) -> bool:
        if schema.get("readOnly") is True:
            return True
        target, _ = self._document.followed(schema, place)
        return isinstance(target, dict) and target.get("readOnly") is True


_NONE: frozenset[str] = frozenset()
