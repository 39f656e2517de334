"""A runtime with what was said of it: of each version, and of the whole; as a record, too."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agentdouble.runtimes.declarations import Table, declare
from agentdouble.runtimes.definition import Version
from agentdouble.runtimes.runtime import Runtime
from agentdouble.state import Record, Resource, times_of


@dataclass(frozen=True)
class Said:
    """One version as it was asked for: its table, and ``fields`` in the platform's names."""

    table: Table
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Managed(Resource):
    """A runtime, what was said of its versions by their numbers, and who asked for it.

    ``latest`` is the version that was made or released last, from which a change starts;
    ``released`` the one that a restarted double brings into force. One that is ``declared`` is
    the settings', and not kept.
    """

    runtime: Runtime
    said: Mapping[int, Said]
    latest: int = 1
    released: int = 1
    declared: bool = False

    def with_version(self, version: Version, said: Said) -> Managed:
        """Return it with one more version; what was said of those that gave way is forgotten."""
        kept = {one.number for one in self.runtime.versions}
        every = {**self.said, version.number: said}
        return replace(
            self,
            said={number: one for number, one in every.items() if number in kept},
            latest=version.number,
            updated_at=version.created_at,
        )

    def with_release(self, version: Version) -> Managed:
        """Return it with a version that is brought into force."""
        return replace(self, latest=version.number, released=version.number)

    def to_record(self) -> Record:
        """Return what a restarted double needs, as JSON-ready data."""
        record = dict(super().to_record() or {})
        del record["runtime"], record["said"], record["declared"]
        versions = [
            {
                "number": version.number,
                "created_at": version.created_at.isoformat(),
                "table": dict(self.said[version.number].table),
                "fields": dict(self.said[version.number].fields),
            }
            for version in self.runtime.versions
        ]
        return {**record, "versions": versions}


def versions_of(record: Record) -> tuple[Version, ...]:
    """Return the versions of a record, the oldest first."""
    return tuple(
        Version(
            one["number"],
            declare(one["table"], kept=True).definition(),
            dt.datetime.fromisoformat(one["created_at"]),
        )
        for one in record["versions"]
    )


def managed_of(record: Record, runtime: Runtime) -> Managed:
    """Return a runtime with what its record says of it."""
    said = {one["number"]: Said(one["table"], one["fields"]) for one in record["versions"]}
    kept = {name: value for name, value in record.items() if name != "versions"}
    return Managed(**{**kept, **times_of(record), "id": runtime.id}, runtime=runtime, said=said)
