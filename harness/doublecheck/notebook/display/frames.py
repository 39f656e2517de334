"""Untrusted HTML in a separate frame: it runs, but it cannot reach the page or the network.

There are two nested frames. The inner frame has no origin, so it cannot reach the page, its cookies
and its kernel. The policy is in the outer frame, where no part of the HTML can come before it. The
inner frame inherits the policy. The outer frame is also needed because the policy of the
surrounding document decides where a frame may navigate; so the inner frame cannot be led to another
address. What the HTML loads from other hosts does not arrive.
"""

from __future__ import annotations

from doublecheck.notebook.display.markup import Markup, element

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; media-src data: blob:; base-uri 'none'; "
    "form-action 'none'; webrtc 'block'"
)
# most HTML is written for a white page: on a dark one it looks like paper
_PAPER = (
    "<!doctype html><meta charset=utf-8><style>html{color-scheme:light}body{margin:8px;"
    "background:#fff;color:#1c2128;font:14px/1.4 system-ui,sans-serif}</style>"
)
_LOWEST_PX, _ROW_PX, _HIGHEST_PX = 120, 24, 460


def framed(html: str, height_px: int | None = None) -> Markup:
    """Return a frame that shows HTML separately; its lower right corner makes it higher."""
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
