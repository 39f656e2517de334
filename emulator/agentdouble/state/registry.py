"""One registry for resources that requests create: it finds, changes, deletes and keeps them."""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Generic, TypeVar

from agentdouble.core.clock import Clock
from agentdouble.core.event_bus import EventBus
from agentdouble.errors import ActionError
from agentdouble.state.store import Change, Record, Store, unbroken

_TIMES = ("created_at", "updated_at")


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource with an id, a name, and a record in the state.

    ``client_token`` and ``request`` are the token of the request that created the resource, and a
    digest of that request. The same request, sent again, creates nothing.
    """

    id: str
    name: str
    created_at: dt.datetime
    updated_at: dt.datetime
    client_token: str | None = None
    request: str | None = None

    def to_record(self) -> Record | None:
        """Return the resource as JSON-ready data, or None if it ends with the process."""
        record = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**record, **{name: record[name].isoformat() for name in _TIMES}}


R = TypeVar("R", bound=Resource)


class Registry(Generic[R]):
    """The resources of one kind; all methods are called on the event loop of the double.

    A change is written first and then made in memory, one change after another, even if the caller
    disconnects meanwhile. A subclass says what else happens when a resource starts, changes and
    ends.
    """

    kind: ClassVar[str]  # of the records
    noun: ClassVar[str]

    def __init__(self, clock: Clock, store: Store | None = None) -> None:
        self._clock = clock
        self._store = store or Store()
        self._items: dict[str, R] = {}
        self._changing = asyncio.Lock()
        self._events = EventBus()

    def publish_to(self, events: EventBus) -> None:
        """From now on, publish what requests create, change and delete."""
        self._events = events

    def _publish(self, item: R, happened: str) -> None:
        if self._events.watched:
            summary = {"id": item.id, "name": item.name}
            self._events.publish(self.noun, item.id, happened, lambda: summary)

    async def load(self) -> None:
        """Restore the resources from the store."""
        records = (await self._store.load(self.kind)).items()
        for id_, record in sorted(records, key=lambda pair: str(pair[1]["created_at"])):
            self._items[id_] = await self._restore(id_, record)
        await self._add_fixed()

    def all(self) -> tuple[R, ...]:
        """Return all resources, the oldest first."""
        return tuple(self._items.values())

    def get(self, id_: str) -> R:
        """Return the resource of that id; raise the error of its kind if there is none."""
        item = self._items.get(id_)
        if item is None:
            raise self._unknown(id_, "id")
        return item

    def named(self, name: str) -> R:
        """Return the resource of that name; raise the error of its kind if there is none."""
        for item in self._items.values():
            if item.name == name:
                return item
        raise self._unknown(name, "name")

    def made_by(self, client_token: str | None) -> R | None:
        """Return the resource that a request with this token created, or None."""
        every = self._items.values() if client_token is not None else ()
        return next((item for item in every if item.client_token == client_token), None)

    async def delete(self, id_: str) -> None:
        """Delete a resource; raise the error of its kind if it does not exist."""
        await unbroken(self._delete(id_))

    async def reset(self) -> None:
        """Restore the initial state: only the resources that always exist."""
        await unbroken(self._reset())

    def adopt(self, resources: Iterable[R]) -> None:
        """Add resources of another double; they are not stored."""
        self._items.update((resource.id, resource) for resource in resources)

    def _described(
        self, id_: str, name: str, client_token: str | None = None, request: Any = None
    ) -> dict[str, Any]:
        """Return the common fields of a new resource; ``request`` is JSON-ready."""
        now = self._clock.now()
        return {
            "id": id_,
            "name": name,
            "created_at": now,
            "updated_at": now,
            "client_token": client_token,
            "request": None if request is None else digest(request),
        }

    async def _add(self, new: R) -> R:
        """Add a resource, or return the one that the same request with the same token created.

        Raises ActionError if another request used the token.
        """
        return await unbroken(self._add_once(new))

    async def _change(self, id_: str, change: Callable[[R], R]) -> R:
        """Replace a resource by the result of ``change``."""
        return await unbroken(self._replace(id_, change))

    async def _add_once(self, new: R) -> R:
        async with self._changing:
            return self._made_already(new.client_token, new.request) or await self._begin(new)

    def _made_already(self, client_token: str | None, request: str | None) -> R | None:
        existing = self.made_by(client_token)
        if existing is not None and existing.request != request:
            reason = f"another request, which made the {self.noun} {existing.id!r}, had it"
            raise ActionError(
                "InvalidParameter", f"The parameter ClientToken is invalid: {reason}."
            )
        return existing

    async def _begin(self, new: R) -> R:
        await self._start(new)
        self._items[new.id] = new  # the resource's own work may look it up
        try:
            await self._keep(new)
        except BaseException:
            del self._items[new.id]
            await self._stop(new)
            raise
        self._publish(new, "created")
        return new

    async def _replace(self, id_: str, change: Callable[[R], R]) -> R:
        async with self._changing:
            before = self.get(id_)
            after = replace(change(before), updated_at=self._clock.now())
            await self._keep(after)
            await self._exchange(before, after)
        self._publish(after, "changed")
        return after

    async def _delete(self, id_: str) -> None:
        async with self._changing:
            item = self.get(id_)
            await self._store.write(Change(self.kind, id_))
            del self._items[id_]
        self._publish(item, "deleted")
        # the stop may take a minute, and other changes need not wait for it
        await self._stop(item)

    async def _reset(self) -> None:
        async with self._changing:
            await self._store.write(*(Change(self.kind, id_) for id_ in self._items))
            items = self.all()
            self._items.clear()
            await self._stop_all(items)
            await self._add_fixed()

    async def _keep(self, item: R) -> None:
        # a resource without a record may have had one before
        await self._store.write(Change(self.kind, item.id, item.to_record()))
        self._items[item.id] = item

    # What each kind defines

    def _unknown(self, value: str, by: str) -> Exception:
        """Return the error for an id or a name that does not exist; ``by`` is "id" or "name"."""
        raise NotImplementedError

    async def _restore(self, id_: str, record: Record) -> R:
        """Return the resource that a record describes, and start its work."""
        raise NotImplementedError

    async def _start(self, new: R) -> None:
        """Start the work of a new resource; raise the error that prevents its creation."""

    async def _exchange(self, before: R, after: R) -> None:
        """Apply a change to the running work of a resource."""

    async def _stop(self, item: R) -> None:
        """End the work of a resource."""

    async def _stop_all(self, items: Sequence[R]) -> None:
        for item in items:
            await self._stop(item)

    async def _add_fixed(self) -> None:
        """Add the resources that always exist."""


def times_of(record: Record) -> dict[str, dt.datetime]:
    """Return the times of a record."""
    return {name: dt.datetime.fromisoformat(record[name]) for name in _TIMES}


def digest(request: Any) -> str:
    """Return a digest that identifies a request; ``request`` is JSON-ready."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
