"""Whose what is: sessions and users of a runtime belong to the identity that first used them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Literal, NamedTuple

from agentdouble.runtimes.authentication.identity import Identity

_MOST_IDENTITIES = 10_000
_MOST_THINGS = 10_000  # of one identity


class Thing(NamedTuple):
    """What an identity uses: a user or a session, by the name it has on the wire."""

    kind: Literal["user", "caller", "session", "mcp", "context", "task"]
    name: str


class Ownership:
    """What the identities own that call one runtime, bounded.

    Only what an identity does itself can make it lose a thing (the one not used for longest),
    or ten thousand others that come after it.
    """

    def __init__(self) -> None:
        self._owners: dict[Thing, Identity] = {}
        self._things: OrderedDict[Identity, OrderedDict[Thing, None]] = OrderedDict()
        self.kinds: set[str] = set()  # of what there ever was

    def owner(self, thing: Thing) -> Identity | None:
        """Return whose it is, None if it is nobody's."""
        return self._owners.get(thing)

    def is_anothers(self, thing: Thing, identity: Identity) -> bool:
        """Whether it is somebody else's."""
        return self._owners.get(thing, identity) != identity

    def take(self, identity: Identity, things: Iterable[Thing]) -> None:
        """Give an identity what is nobody's among these."""
        for thing in things:
            if not self.is_anothers(thing, identity):
                self._take(identity, thing)

    def _take(self, identity: Identity, thing: Thing) -> None:
        owned = self._things.setdefault(identity, OrderedDict())
        self._things.move_to_end(identity)
        owned[thing] = None
        owned.move_to_end(thing)
        self._owners[thing] = identity
        self.kinds.add(thing.kind)
        if len(owned) > _MOST_THINGS:
            self._owners.pop(owned.popitem(last=False)[0])
        if len(self._things) > _MOST_IDENTITIES:
            for forgotten in self._things.popitem(last=False)[1]:
                self._owners.pop(forgotten)
