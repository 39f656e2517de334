"""A runtime with the requests that created its versions, also as a record."""

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
    """The request for one version: its table, and ``fields`` with the platform's names."""

    table: Table
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Managed(Resource):
    """A runtime, with the requests for its versions by their numbers, and its client token.

    ``latest`` is the version that was created or released last, and the base of the next change.
    ``released`` is the version that a restarted double brings into force. A runtime that is
    ``declared`` comes from the settings and is not stored.
    """

    runtime: Runtime
    said: Mapping[int, Said]
    latest: int = 1
    released: int = 1
    declared: bool = False

    def with_version(self, version: Version, said: Said) -> Managed:
        """Return it with one more version, without the requests of dropped versions."""
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
        """Return the JSON-ready data that a restarted double needs."""
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
    """Return a runtime with the data of its record."""
    said = {one["number"]: Said(one["table"], one["fields"]) for one in record["versions"]}
    kept = {name: value for name, value in record.items() if name != "versions"}
    return Managed(**{**kept, **times_of(record), "id": runtime.id}, runtime=runtime, said=said)
