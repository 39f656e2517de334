"""unknowns(): the unknowns of the specification, and the answers that a double uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doublecheck.api.connect import connect
from doublecheck.client._sync.platform import Platform
from doublecheck.runner.subject import target_of
from doublecheck.values.unknowns import Unknowns, ledger_unknowns

if TYPE_CHECKING:
    from doublecheck.client._async.platform import AsyncPlatform


def unknowns(platform: Platform | AsyncPlatform | str | None = None) -> Unknowns:
    """Return the ledger of a double; it marks the unknowns that answers relied on.

    Without a platform, return the ledger with a double's default answers. Raises NotADoubleError.
    """
    if platform is None:
        return ledger_unknowns()
    if isinstance(platform, Platform):
        return platform.unknowns()
    opened = connect(platform) if isinstance(platform, str) else Platform(target_of(platform))
    with opened as found:
        return found.unknowns()
