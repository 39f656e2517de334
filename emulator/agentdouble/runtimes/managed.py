"""A runtime with what was said of it: of each version, and of the whole; as a record, too."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agentdouble.runtimes.declarations import Table, declare
from agentdouble.runtimes.runtime import Runtime
from agentdouble.runtimes.versions import Version
from agentdouble.state import Record


@dataclass(frozen=True)
class Said:
    """One version as it was asked for: its table, and ``fields`` in the platform's names."""

    table: Table
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Managed:
    """A runtime, what was said of its versions by their numbers, and who asked for it.

    ``latest`` is the version that was made or released last, from which a change starts;
    ``released`` the one that a restarted double brings into force. One that is ``declared`` is
    the settings', and not kept.
    """

    runtime: Runtime
    said: Mapping[int, Said]
    latest: int
    released: int
    created_at: dt.datetime
    updated_at: dt.datetime
    declared: bool = False
    client_token: str | None = None
    request: str | None = None

    @property
    def id(self) -> str:
        """The runtime's id, ``r-...``."""
        return self.runtime.id

    @property
    def name(self) -> str:
        """The runtime's name."""
        return self.runtime.name

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
        return {
            "name": self.name,
            "latest": self.latest,
            "released": self.released,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
            "client_token": self.client_token,
            "request": self.request,
            "versions": [
                {
                    "number": version.number,
                    "created_at": version.created_at.isoformat(),
                    "table": dict(self.said[version.number].table),
                    "fields": dict(self.said[version.number].fields),
                }
                for version in self.runtime.versions
            ],
        }


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
    return Managed(
        runtime,
        {one["number"]: Said(one["table"], one["fields"]) for one in record["versions"]},
        record["latest"],
        record["released"],
        dt.datetime.fromisoformat(record["created_at"]),
        dt.datetime.fromisoformat(record["updated_at"]),
        client_token=record["client_token"],
        request=record["request"],
    )
