"""What the tab key asks of a double: never anything that starts, waits or is written down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from doublecheck.client.platform import Platform
from doublecheck.magics.platforms import Platforms

_PATIENCE_S = 2.0


@contextmanager
def asked(platforms: Platforms, name: str | None = None) -> Iterator[Platform | None]:
    """Yield a connection to a double, the one in use for None; None if none has started.

    It is a connection of its own: what a notebook's platform was asked is kept, for saved tests.
    """
    known = platforms.known(name)
    if known is None or not known.platform.target.admin:
        yield None
        return
    with Platform(known.platform.target, timeout_s=_PATIENCE_S) as platform:
        yield platform
