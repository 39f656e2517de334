"""The registry of runtimes: declared by the settings or made at run time, changed, and kept."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from agentdouble.clock import Clock
from agentdouble.errors import (
    DeclarationError,
    RuntimeNameError,
    UnknownRuntimeError,
    UnknownVersionError,
)
from agentdouble.runtimes import managed
from agentdouble.runtimes.declarations import Declaration, Table, declare
from agentdouble.runtimes.managed import Managed, Said
from agentdouble.runtimes.runtimes import Runtimes
from agentdouble.runtimes.versions import Version
from agentdouble.state import Change, MemoryStore, Store, unbroken

KIND = "runtime"


class Registry:
    """What the settings declare, and what is made besides; everything is called on one loop.

    What is made goes through the store; what is declared is as the settings say at each start,
    whatever was done to it.
    """

    def __init__(
        self,
        clock: Clock,
        runtimes: Runtimes,
        declared: Iterable[Declaration] = (),
        store: Store | None = None,
    ) -> None:
        self._clock = clock
        self._runtimes = runtimes
        self._declared = tuple(declared)
        self._store = store or MemoryStore()
        self._managed: dict[str, Managed] = {}
        self._changing = asyncio.Lock()

    async def load(self) -> None:
        """Take up what the store has kept and what is declared; raise DeclarationError."""
        records = sorted(
            (await self._store.load(KIND)).items(), key=lambda one: one[1]["created_at"]
        )
        for id_, record in records:
            await self._restore(id_, record)
        await self._declare()

    def all(self) -> tuple[Managed, ...]:
        """Return every runtime."""
        return tuple(self._managed.values())

    def get(self, id_: str) -> Managed:
        """Return the runtime of that id; raise UnknownRuntimeError."""
        found = self._managed.get(id_)
        if found is None:
            raise UnknownRuntimeError(id_, self._managed)
        return found

    def named(self, name: str) -> Managed:
        """Return the runtime of that name; raise UnknownRuntimeError."""
        found = next((one for one in self._managed.values() if one.name == name), None)
        if found is None:
            raise UnknownRuntimeError(name, (one.name for one in self._managed.values()))
        return found

    async def create(
        self,
        table: Table,
        *,
        fields: Mapping[str, Any] | None = None,
        client_token: str | None = None,
        request: str | None = None,
    ) -> Managed:
        """Make a runtime, or return the one that the same request with the same token has made.

        Raises DeclarationError, RuntimeNameError, and ValueError if another request had the token.
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
            made = self._made_by(client_token, request)
            if made is not None:
                return made
            made = await self._make(declare(_said(table)), fields)
            made = replace(made, client_token=client_token, request=request)
            try:
                await self._keep(made)
            except BaseException:
                await self._runtimes.delete(made.name)
                raise
            return made

    async def update(
        self,
        id_: str,
        changes: Mapping[str, Any],
        *,
        fields: Mapping[str, Any] | None = None,
        release: bool = True,
    ) -> Version:
        """Make one more version, of the latest with ``changes`` to its table and ``fields``.

        A change to None takes a key out of the table.
        Raises UnknownRuntimeError, DeclarationError and RuntimeNameError.
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
                await self._keep(changed.with_release(version) if release else changed)
            except BaseException:
                found.runtime.restore(earlier, found.runtime.version.number)
                raise
            if release:
                await found.runtime.release(version.number, "Updating")
        return version

    async def release(self, id_: str, number: int | None = None) -> Version:
        """Bring a version into force, the newest if none is said.

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
            return await found.runtime.release(version.number)

    async def delete(self, id_: str) -> None:
        """End a runtime and its instances; raise UnknownRuntimeError."""
        await unbroken(self._delete(id_))

    async def _delete(self, id_: str) -> None:
        async with self._changing:
            name = self.get(id_).name
            await self._store.write([Change(KIND, id_)], _nothing)
            del self._managed[id_]
        await self._runtimes.delete(name)

    async def reset(self) -> None:
        """End every runtime; leave those that are declared, as they were at first."""
        async with self._changing:
            await self._store.write([Change(KIND, id_) for id_ in self._managed], _nothing)
            self._managed.clear()
            await self._runtimes.close()
            await self._declare()

    async def _declare(self) -> None:
        for declaration in self._declared:
            name = declaration.name
            try:
                made = await self._make(declaration, {}, _id_of(name))
            except RuntimeNameError as error:
                reason = f"{error.reason}; it was made at run time, and the state has kept it"
                raise DeclarationError(name, "runtimes", reason) from None
            self._managed[made.id] = replace(made, declared=True)

    async def _make(
        self, declaration: Declaration, fields: Mapping[str, Any], id_: str | None = None
    ) -> Managed:
        runtime = await self._runtimes.create(declaration.definition(), id_)
        now = self._clock.now()
        return Managed(runtime, {1: Said(declaration.resolved(), fields)}, 1, 1, now, now)

    async def _restore(self, id_: str, record: Mapping[str, Any]) -> None:
        versions = managed.versions_of(record)
        released = next(one for one in versions if one.number == record["released"])
        runtime = await self._runtimes.create(released.definition, id_)
        runtime.restore(versions, released.number)
        self._managed[id_] = managed.managed_of(record, runtime)

    async def _keep(self, found: Managed) -> None:
        if not found.declared:
            await self._store.write([Change(KIND, found.id, found.to_record())], _nothing)
        self._managed[found.id] = found

    def _made_by(self, client_token: str | None, request: str | None) -> Managed | None:
        if client_token is None:
            return None
        every = self._managed.values()
        made = next((one for one in every if one.client_token == client_token), None)
        if made is not None and made.request != request:
            raise ValueError(f"another request, which made the runtime {made.id!r}, had it")
        return made


def _nothing() -> None:
    """Take nothing back: memory follows what is kept, one change at a time."""


def _said(table: Table) -> Table:
    return {key: value for key, value in table.items() if value is not None}


def _id_of(name: str) -> str:
    """Return the id of a runtime that is declared: the same at every start."""
    return f"r-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
