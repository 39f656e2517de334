"""The registry of runtimes: declared by the settings or created at run time, and stored."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentdouble.clock import Clock
from agentdouble.errors import (
    DeclarationError,
    RuntimeNameError,
    UnknownRuntimeError,
    UnknownVersionError,
)
from agentdouble.runtimes.definition import Declaration, Table, Version, declare
from agentdouble.runtimes.runtime import Runtime
from agentdouble.runtimes.runtimes import Runtimes
from agentdouble.state import Record, Registry, Resource, Store, times_of, unbroken


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


class RuntimeRegistry(Registry[Managed]):
    """The runtimes that the settings declare, and those that are created at run time.

    A created runtime is stored. A declared runtime is as the settings declare it at each start,
    whatever changes were made to it before.
    """

    kind = "runtime"
    noun = "runtime"

    def __init__(
        self,
        clock: Clock,
        runtimes: Runtimes,
        declared: Iterable[Declaration] = (),
        store: Store | None = None,
    ) -> None:
        super().__init__(clock, store)
        self._runtimes = runtimes
        self._declared = tuple(declared)

    async def create(
        self,
        table: Table,
        *,
        fields: Mapping[str, Any] | None = None,
        client_token: str | None = None,
        request: str | None = None,
    ) -> Managed:
        """Create a runtime, or return the one that the same request with the same token created.

        Raises DeclarationError, RuntimeNameError, and ClientTokenError if another request had the
        token.
        """
        return await unbroken(self._create(table, fields or {}, client_token, request))

    async def _create(
        self,
        table: Table,
        fields: Mapping[str, Any],
        client_token: str | None,
        request: str | None,
    ) -> Managed:
        async with self._changing:
            made = self._made_already(client_token, request)
            if made is not None:
                return made
            made = await self._make(declare(_said(table)), fields)
            return await self._begin(replace(made, client_token=client_token, request=request))

    async def update(
        self,
        id_: str,
        changes: Mapping[str, Any],
        *,
        fields: Mapping[str, Any] | None = None,
        release: bool = True,
    ) -> Version:
        """Create a version from the latest, with ``changes`` to its table and ``fields``.

        A change to None removes a key from the table. Raises UnknownRuntimeError, DeclarationError
        and RuntimeNameError.
        """
        return await unbroken(self._update(id_, changes, fields or {}, release))

    async def _update(
        self, id_: str, changes: Mapping[str, Any], fields: Mapping[str, Any], release: bool
    ) -> Version:
        async with self._changing:
            found = self.get(id_)
            before = found.said[found.latest]
            declaration = declare(_said({**before.table, **changes}))
            earlier = found.runtime.versions
            version = await found.runtime.update(declaration.definition(), release=False)
            said = Said(declaration.resolved(), {**before.fields, **fields})
            changed = self.get(id_).with_version(version, said)
            try:
                changed = changed.with_release(version) if release else changed
                await self._keep(changed)
            except BaseException:
                found.runtime.restore(earlier, found.runtime.version.number)
                raise
            if release:
                await found.runtime.release(version.number, "Updating")
        self._publish(found, "changed")
        return version

    async def release(self, id_: str, number: int | None = None) -> Version:
        """Bring a version into force, by default the newest.

        Raises UnknownRuntimeError and UnknownVersionError.
        """
        return await unbroken(self._release(id_, number))

    async def _release(self, id_: str, number: int | None) -> Version:
        async with self._changing:
            found = self.get(id_)
            versions = {one.number: one for one in found.runtime.versions}
            version = versions.get(max(versions) if number is None else number)
            if version is None:
                raise UnknownVersionError(found.name, number or 0, sorted(versions))
            changed = replace(found.with_release(version), updated_at=self._clock.now())
            await self._keep(changed)
            self._publish(found, "changed")
            return await found.runtime.release(version.number)

    def _unknown(self, asked: str, by: str) -> UnknownRuntimeError:
        return UnknownRuntimeError(asked, (getattr(one, by) for one in self._items.values()))

    async def _restore(self, id_: str, record: Record) -> Managed:
        versions = versions_of(record)
        released = next(one for one in versions if one.number == record["released"])
        runtime = await self._runtimes.create(released.definition, id_)
        runtime.restore(versions, released.number)
        return managed_of(record, runtime)

    async def _have(self, one: Managed, record: Record | None) -> Managed:
        there = self._items.pop(one.id, None)
        if there is not None:  # its instances are those of versions that may not exist any more
            await self._stop(there)
        return await self._resume(one, record)

    async def _resume(self, one: Managed, record: Record | None) -> Managed:
        assert record is not None
        return replace(await self._restore(one.id, record), declared=one.declared)

    def _kept_record(self, one: Managed, record: Record | None) -> Record | None:
        return None if one.declared else record

    async def _keep(self, one: Managed) -> None:
        if one.declared:
            self._items[one.id] = one
        else:
            await super()._keep(one)

    async def _stop(self, gone: Managed) -> None:
        await self._runtimes.delete(gone.name)

    async def _stop_all(self, gone: Sequence[Managed]) -> None:
        await self._runtimes.close()

    async def _add_fixed(self) -> None:
        for declaration in self._declared:
            name = declaration.name
            try:
                made = await self._make(declaration, {}, _id_of(name))
            except RuntimeNameError as error:
                reason = f"{error.reason}; it was made at run time, and the state has kept it"
                raise DeclarationError(name, "runtimes", reason) from None
            self._items[made.id] = replace(made, declared=True)

    async def _make(
        self, declaration: Declaration, fields: Mapping[str, Any], id_: str | None = None
    ) -> Managed:
        runtime = await self._runtimes.create(declaration.definition(), id_)
        return Managed(
            **self._described(runtime.id, runtime.name),
            runtime=runtime,
            said={1: Said(declaration.resolved(), fields)},
        )


def _said(table: Table) -> Table:
    return {key: value for key, value in table.items() if value is not None}


def _id_of(name: str) -> str:
    """Return the id of a declared runtime, which is the same at every start."""
    return f"r-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
