"""How what is known of a session's browser looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doublecheck.notebook.display.elements import Markup, joined
from doublecheck.notebook.display.markup import box, code, quiet, table

if TYPE_CHECKING:
    from doublecheck.results import BrowserInfo


def info(shown: BrowserInfo) -> Markup:
    """Return what a browser is; the address that opens it is kept from sight."""
    address = joined([code(str(shown.cdp_url)), quiet("cdp_url.reveal() returns it")], " ")
    rows: list[list[str | None]] = [
        [quiet("browser"), shown.user_agent],
        [quiet("pages"), f"{shown.width} by {shown.height} pixels"],
        [quiet("DevTools"), address],
    ]
    return box(table(["", ""], rows))
