"""Issuers of tokens: their keys, fetched when first needed and kept for a while."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from agentdouble.clock import Clock
from agentdouble.runtimes.authentication import discovery

LIFETIME = dt.timedelta(hours=1)
AGAIN = dt.timedelta(seconds=10)  # an unknown key is looked for that often at most
_MOST = 100  # issuers


@dataclass(frozen=True)
class Keys:
    """The keys of an issuer by their id, as they were ``at``."""

    issuer: str
    by_id: Mapping[str | None, tuple[discovery.SigningKey, ...]]
    at: dt.datetime


class Issuer:
    """One issuer of tokens, known by the URL of its discovery document."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self._known: Keys | None = None
        self._asking: asyncio.Future[Keys] | None = None

    async def keys(self, kid: str | None) -> Keys:
        """Return its keys, asked for anew if they are old or have no ``kid``; raise IssuerError."""
        known = self._known
        if known is None or self._older(known, LIFETIME):
            return await self._ask()
        if kid is not None and kid not in known.by_id and self._older(known, AGAIN):
            return await self._ask()
        return known

    def _older(self, known: Keys, than: dt.timedelta) -> bool:
        return not dt.timedelta(0) <= self._clock.now() - known.at < than

    async def close(self) -> None:
        """Give up asking."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})

    async def _ask(self) -> Keys:
        """Ask once for everybody who waits, whoever of them gives up."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self._fetch())
            self._asking.add_done_callback(_retrieve)
        return await asyncio.shield(self._asking)

    async def _fetch(self) -> Keys:
        issuer, by_id = await discovery.fetch(self._url)
        self._known = Keys(issuer, by_id, self._clock.now())
        return self._known


def _retrieve(asking: asyncio.Future[Keys]) -> None:
    """Keep asyncio from telling of a failure that nobody waits for any more."""
    if not asking.cancelled():
        asking.exception()


class Issuers:
    """The issuers that a double's runtimes trust; belongs to one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_url: OrderedDict[str, Issuer] = OrderedDict()

    def at(self, url: str) -> Issuer:
        """Return the issuer with that discovery document."""
        found = self._by_url.setdefault(url, Issuer(url, self._clock))
        self._by_url.move_to_end(url)
        if len(self._by_url) > _MOST:
            self._by_url.popitem(last=False)
        return found

    async def close(self) -> None:
        """Give up asking, and forget them all."""
        issuers = tuple(self._by_url.values())
        self._by_url.clear()
        await asyncio.gather(*(issuer.close() for issuer in issuers))
