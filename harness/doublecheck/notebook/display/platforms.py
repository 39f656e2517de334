"""The display of a platform, as ``connect()`` returns it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doublecheck.core.markup import (
    GOOD,
    INFO,
    Markup,
    badge,
    box,
    code,
    element,
    joined,
    quiet,
    table,
    title,
)

if TYPE_CHECKING:
    from doublecheck.client._async.platform import AsyncPlatform
    from doublecheck.client._sync.platform import Platform

_SEPARATE = ("api_server", "control_plane", "mcp", "a2a")
_OF_A_DOUBLE = (
    ("sessions", "sandboxes()"),
    ("requests", "journal()"),
    ("what the specification leaves open", "unknowns()"),
    ("time", "clock.advance(minutes=30)"),
)


def platform(platform: Platform | AsyncPlatform) -> Markup:
    """Return a card: the address, what is served there, and where to look next."""
    target = platform.target
    kind = badge(target.kind, GOOD if target.kind == "double" else INFO)
    name = target.name if target.name != target.kind else "Platform"
    assumed = quiet(" (assumed)") if target.offers_assumed else None
    surfaces = ", ".join(sorted(surface.replace("_", " ") for surface in target.offered))
    rows: list[list[str | None]] = [["address", _link(target.url)]]
    for surface in _SEPARATE:
        address = getattr(target, surface)
        if address != target.url:
            rows.append([surface.replace("_", " "), _link(address)])
    rows.append(["serves", joined((surfaces, assumed))])
    if target.tool_id is not None:
        rows.append(["sandbox tool", code(target.tool_id)])
    if target.console is not None:
        rows.append(["console", _link(target.console.reveal(), "sessions, requests, faults")])
    if target.admin:
        rows += [[noun, code(f"platform.{call}")] for noun, call in _OF_A_DOUBLE]
    return box(title(name, kind), table(["", ""], rows))


def _link(url: str, text: str | None = None) -> Markup:
    return element("a", text or url, href=url, target="_blank", rel="noopener noreferrer")
