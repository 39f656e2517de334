"""HTML that is not trusted, in a frame of its own: it runs, and reaches neither page nor network.

There are two frames, one in the other. The inner has no origin, so the page, its cookies and its
kernel are out of reach. The policy stands in the outer, where nothing of the HTML can precede it;
the inner inherits it, and may not be led elsewhere either, which is what the outer is for: where a
frame may go is said by the policy of the document around it.
"""

from __future__ import annotations

from doublecheck.notebook.display import elsewhere
from doublecheck.notebook.display.elements import Markup, element, joined
from doublecheck.notebook.display.heights import height_px

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; media-src data: blob:; base-uri 'none'; "
    "form-action 'none'; webrtc 'block'"
)
# written for a white page, most of it: on a dark one it lies as on paper
_PAPER = (
    "<!doctype html><meta charset=utf-8><style>html{color-scheme:light}body{margin:8px;"
    "background:#fff;color:#1c2128;font:14px/1.4 system-ui,sans-serif}</style>"
)


def framed(html: str) -> Markup:
    """Return a frame that shows HTML by itself; its lower right corner makes it higher.

    Below it is said what the HTML loads from elsewhere, which does not arrive.
    """
    lacking = elsewhere.told(html)
    filling = "border:0;width:100%;height:100%;display:block"
    inner = element("iframe", sandbox="allow-scripts", srcdoc=_PAPER + _lines(html), style=filling)
    outer = (
        f'<!doctype html><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<style>html,body{{margin:0;height:100%;overflow:hidden}}</style>{inner}"
    )
    frame = element("iframe", sandbox="allow-scripts", srcdoc=outer, style=filling, loading="lazy")
    style = (
        f"height:{height_px(html, whole=lacking is None)}px;min-height:3em;max-width:100%;box-sizing:border-box;"
        "resize:vertical;overflow:hidden;padding-bottom:.6em;border:1px solid rgba(128,128,128,.3)"
    )
    return joined([element("div", frame, style=style), lacking])


def _lines(html: str) -> str:
    return html.replace("\r\n", "\n").replace("\r", "\n")
