"""Frames that show foreign HTML in isolation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Attribute = str | bool | None
from doublecheck.core.markup import Markup, element

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; media-src data: blob:; base-uri 'none'; "
    "form-action 'none'; webrtc 'block'"
)
# most HTML assumes a white page and is unreadable on a dark one
_PAPER = (
    "<!doctype html><meta charset=utf-8><style>html{color-scheme:light}body{margin:8px;"
    "background:#fff;color:#1c2128;font:14px/1.4 system-ui,sans-serif}</style>"
)
_LOWEST_PX, _ROW_PX, _HIGHEST_PX = 120, 24, 460


def framed(html: str, height_px: int | None = None) -> Markup:
    """Return a frame that shows HTML in isolation. Its lower right corner resizes it."""
    if height_px is None:
        rows = html.count("<tr") * _ROW_PX
        height_px = min(_LOWEST_PX + rows, _HIGHEST_PX) if "<script" not in html else _HIGHEST_PX
    lines = html.replace("\r\n", "\n").replace("\r", "\n")
    filling = "border:0;width:100%;height:100%;display:block"
    inner = element("iframe", sandbox="allow-scripts", srcdoc=_PAPER + lines, style=filling)
    outer = (
        f'<!doctype html><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<style>html,body{{margin:0;height:100%;overflow:hidden}}</style>{inner}"
    )
    frame = element("iframe", sandbox="allow-scripts", srcdoc=outer, style=filling, loading="lazy")
    style = (
        f"height:{height_px}px;min-height:3em;max-width:100%;box-sizing:border-box;"
        "resize:vertical;overflow:hidden;padding-bottom:.6em;border:1px solid rgba(128,128,128,.3)"
    )
    return element("div", frame, style=style)
