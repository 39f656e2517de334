"""The versions of a runtime: numbered, kept for a roll back, bounded."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from agentdouble.errors import UnknownVersionError
from agentdouble.runtimes.definition import Definition

KEPT = 50


@dataclass(frozen=True)
class Version:
    """What a runtime was said to be at a time; numbers begin with 1 and are never used twice."""

    number: int
    definition: Definition
    created_at: dt.datetime


class Versions:
    """The versions that are kept, oldest first; the one in force stays, however old."""

    def __init__(self, first: Version) -> None:
        self._kept = {first.number: first}
        self.in_force = first
        self.released = first.number  # the highest that was ever released

    def all(self) -> tuple[Version, ...]:
        """Return those that are kept, the oldest first."""
        return tuple(self._kept.values())

    @property
    def latest(self) -> Version:
        """The newest."""
        return self._kept[max(self._kept)]

    def find(self, number: int) -> Version:
        """Return the version of that number; raise UnknownVersionError."""
        found = self._kept.get(number)
        if found is None:
            raise UnknownVersionError(self.in_force.definition.name, number, sorted(self._kept))
        return found

    def add(self, definition: Definition, at: dt.datetime) -> Version:
        """Keep a definition as the newest version; the oldest gives way."""
        version = Version(self.latest.number + 1, definition, at)
        self._kept[version.number] = version
        if len(self._kept) > KEPT:
            del self._kept[next(n for n in self._kept if n != self.in_force.number)]
        return version

    def bring_in_force(self, version: Version) -> None:
        """Have new requests meet a version."""
        self.in_force = version
        self.released = max(self.released, version.number)

    def restore(self, kept: Sequence[Version], in_force: int) -> None:
        """Take up versions that were kept elsewhere, oldest first."""
        self._kept = {version.number: version for version in kept}
        self.bring_in_force(self.find(in_force))
