"""unknowns(): what the specification leaves open, and which answers are in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doublecheck import ledger
from doublecheck.connecting import connect
from doublecheck.ledger import Unknowns

if TYPE_CHECKING:
    from doublecheck.platform import Platform


def unknowns(platform: Platform | str | None = None) -> Unknowns:
    """Return the ledger of a double, in hand or at a URL: what its answers rested on is marked.

    Without one it is the ledger with the answers that a double begins with. Raises
    NotADoubleError.
    """
    if platform is None:
        return ledger.unknowns()
    if not isinstance(platform, str):
        return platform.unknowns()
    with connect(platform) as found:
        return found.unknowns()
