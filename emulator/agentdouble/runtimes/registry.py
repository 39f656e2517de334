"""The runtimes of a double: declared by the settings or created at run time, and stored."""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import logging
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentdouble.core import ledger
from agentdouble.core.clock import Clock
from agentdouble.core.threads import pause
from agentdouble.errors import DeclarationError, RuntimeNameError, UnknownRuntimeError
from agentdouble.runtimes.definition import Definition, Table, Version, declare
from agentdouble.runtimes.instance import Launch
from agentdouble.runtimes.monitoring import Monitor
from agentdouble.runtimes.runtime import Runtime
from agentdouble.state import Record, Registry, Resource, Store, times_of, unbroken

REAPER_INTERVAL_S = 0.25
_IDLE_S = 300.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Managed(Resource):
    """A runtime with its client token.

    ``latest`` is the version that was created or released last, and the base of the next change.
    ``released`` is the version that a restarted double brings into force. A runtime that is
    ``declared`` comes from the settings and is not stored.
    """

    runtime: Runtime
    latest: int = 1
    released: int = 1
    declared: bool = False

    def to_record(self) -> Record:
        """Return the JSON-ready data that a restarted double needs."""
        record = dict(super().to_record() or {})
        del record["runtime"], record["declared"]
        versions = [
            {
                "number": version.number,
                "created_at": version.created_at.isoformat(),
                "table": version.definition.table(),
                "fields": dict(version.fields),
            }
            for version in self.runtime.versions
        ]
        return {**record, "versions": versions}


def _version_of(record: Record) -> Version:
    return Version(
        record["number"],
        declare(record["table"], stored=True),
        dt.datetime.fromisoformat(record["created_at"]),
        record["fields"],
    )


class RuntimeRegistry(Registry[Managed]):
    """The runtimes that the settings declare, and those that are created at run time.

    A created runtime is stored. A declared runtime is as the settings declare it at each start,
    whatever changes were made to it before. If a runtime does not set its own idle time, ``idle_s``
    applies, provided that the ledger lets the settings decide. ``reserved`` are names that no
    runtime can have.
    """

    kind = "runtime"
    noun = "runtime"

    def __init__(
        self,
        clock: Clock,
        monitor: Monitor,
        launch: Launch,
        declared: Iterable[Definition] = (),
        store: Store | None = None,
        *,
        idle_s: float = _IDLE_S,
        reserved: Collection[str] = (),
    ) -> None:
        super().__init__(clock, store)
        self._monitor = monitor
        self._launch = launch
        self._declared = tuple(declared)
        self._idle_s = idle_s
        self._taken = frozenset(reserved)
        self._open = False
        self._closing: set[asyncio.Future[None]] = set()

    def runtimes(self) -> tuple[Runtime, ...]:
        """Return the runtimes in the order of their creation."""
        return tuple(managed.runtime for managed in self._items.values())

    def find(self, name: str) -> Runtime | None:
        """Return the runtime with this name, or None."""
        return next((runtime for runtime in self.runtimes() if runtime.name == name), None)

    async def create(
        self,
        table: Table,
        *,
        fields: Mapping[str, Any] | None = None,
        client_token: str | None = None,
        request: str | None = None,
    ) -> Managed:
        """Create a runtime, or return the one that the same request with the same token created.

        Raises DeclarationError, RuntimeNameError, and ActionError if another request had the
        token.
        """

        # The callers of create, update and release may disconnect: ``unbroken`` goes on, so that the
        # registry, the record and the processes agree.
        async def create() -> Managed:
            async with self._changing:
                existing = self._made_already(client_token, request)
                if existing is not None:
                    return existing
                new = self._make(_declare(table), fields or {})
                return await self._begin(replace(new, client_token=client_token, request=request))

        return await unbroken(create())

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

        async def update() -> Version:
            async with self._changing:
                managed = self.get(id_)
                runtime, before = managed.runtime, managed.runtime.find_version(managed.latest)
                definition = _declare({**before.definition.table(), **changes})
                versions = runtime.versions
                version = runtime.add(definition, {**before.fields, **(fields or {})})
                number, now = version.number, version.created_at
                released = number if release else managed.released
                changed = replace(managed, latest=number, released=released, updated_at=now)
                try:
                    await self._keep(changed)
                except BaseException:  # the version was not stored, so it must not run
                    runtime.versions = versions
                    raise
                if release:
                    runtime.deploy(version, "Updating")
            self._publish(managed, "changed")
            return version

        return await unbroken(update())

    async def release(self, id_: str, number: int | None = None) -> Version:
        """Bring a version into force, by default the newest.

        Raises UnknownRuntimeError and UnknownVersionError.
        """

        async def release() -> Version:
            async with self._changing:
                managed = self.get(id_)
                version = managed.runtime.find_version(number)
                newest, now = version.number, self._clock.now()
                await self._keep(replace(managed, latest=newest, released=newest, updated_at=now))
                self._publish(managed, "changed")
                managed.runtime.deploy(version)
                return version

        return await unbroken(release())

    # What runs

    def ensure_min_instances(self) -> None:
        """Keep the ``min_instances`` of every runtime from now on."""
        self._open = True
        for runtime in self.runtimes():
            runtime.ensure_min_instances()

    def begin_shutdown(self) -> None:
        """Turn away waiting requests: the double is about to stop."""
        for runtime in self.runtimes():
            runtime.begin_shutdown()

    async def close(self, reason: str = "the double was reset or stopped") -> None:
        """End all runtimes; return when nothing is left, including of those deleted before."""
        for runtime in self.runtimes():
            self._close(runtime, reason)
        self._items.clear()
        if self._closing:
            # A copy of the set: each task removes itself from it when it is done.
            await asyncio.wait(set(self._closing))

    async def settle(self) -> None:
        """End idle instances; return when every ending instance has ended."""
        idle_s = self._default_idle_s()
        await asyncio.gather(*(runtime.settle(idle_s) for runtime in self.runtimes()))

    async def reap(self) -> None:
        """End idle instances for ever (HST-02, U-SCALE-IDLE)."""
        while True:  # it polls, because a move of a frozen clock wakes no task
            try:
                for runtime in self.runtimes():
                    runtime.end_idle(self._default_idle_s())
            except Exception:  # an error must not stop the reaper
                _log.exception("The instances that are idle could not be ended.")
            await pause(REAPER_INTERVAL_S)

    def _default_idle_s(self) -> float:
        return self._idle_s if ledger.choose("U-SCALE-IDLE") == "settings" else _IDLE_S

    def _close(self, runtime: Runtime, reason: str) -> asyncio.Future[None]:
        """Begin to end a runtime in a separate task."""

        async def close() -> None:
            await runtime.close(reason)
            # Another runtime may have taken the name since; its figures must stay.
            if self.find(runtime.name) is None:
                self._monitor.forget(runtime.name)

        task = asyncio.ensure_future(close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    def _make(
        self, definition: Definition, fields: Mapping[str, Any], id_: str | None = None
    ) -> Managed:
        if definition.name in self._taken:
            reason = f"an application of this process answers at /runtimes/{definition.name}"
            raise RuntimeNameError(definition.name, reason)
        if self.find(definition.name) is not None:
            raise RuntimeNameError(definition.name, "there is one of that name")
        id_ = id_ or f"r-{secrets.token_hex(8)}"
        runtime = Runtime(id_, definition, self._clock, self._monitor, self._launch)
        runtime.restore([replace(runtime.version, fields=fields)], 1)
        return Managed(**self._described(id_, definition.name), runtime=runtime)

    # Storing a runtime in the state, and restoring it

    async def _start(self, new: Managed) -> None:
        if self._open:
            new.runtime.ensure_min_instances()

    def _unknown(self, value: str, by: str) -> UnknownRuntimeError:
        return UnknownRuntimeError(value, (getattr(item, by) for item in self._items.values()))

    async def _restore(self, id_: str, record: Record) -> Managed:
        versions = [_version_of(version) for version in record["versions"]]
        managed = self._make(versions[0].definition, {}, id_)
        managed.runtime.restore(versions, record["released"])
        await self._start(managed)
        fields = {name: value for name, value in record.items() if name != "versions"}
        return Managed(**{**fields, **times_of(record), "id": id_}, runtime=managed.runtime)

    async def _keep(self, managed: Managed) -> None:
        if managed.declared:
            self._items[managed.id] = managed
        else:
            await super()._keep(managed)

    async def _stop(self, deleted: Managed) -> None:
        await asyncio.wait({self._close(deleted.runtime, "it was deleted")})

    async def _stop_all(self, deleted: Sequence[Managed]) -> None:
        for managed in deleted:
            self._close(managed.runtime, "the double was reset or stopped")
        await self.close()

    async def _add_fixed(self) -> None:
        for definition in self._declared:
            id_ = f"r-{hashlib.sha256(definition.name.encode()).hexdigest()[:16]}"
            try:
                managed = self._make(definition, {}, id_)
            except RuntimeNameError as error:
                reason = f"{error.reason}; it was created at run time, and the state has kept it"
                raise DeclarationError(definition.name, "runtimes", reason) from None
            self._items[id_] = replace(managed, declared=True)
            await self._start(managed)


def _declare(table: Table) -> Definition:
    return declare({key: value for key, value in table.items() if value is not None})
