"""Untrusted HTML in a separate frame: it runs, but it cannot reach the page or the network.

There are two nested frames. The inner frame has no origin, so it cannot reach the page, its cookies
and its kernel. The policy is in the outer frame, where no part of the HTML can come before it. The
inner frame inherits the policy. The outer frame is also needed because the policy of the
surrounding document decides where a frame may navigate; so the inner frame cannot be led to another
address.

Resources that the HTML loads from other hosts do not arrive; a line below the frame says so. The
line is made from the HTML and is outside the frame, because the HTML could forge a line inside. A
library that is embedded in the HTML is not searched, because it names many addresses that it never
loads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from doublecheck.notebook.display.frame_heights import height_px
from doublecheck.notebook.display.markup import Markup, code, element, joined, quiet

_HOST = r"(?:https?:)?//([\w-]+(?:\.[\w-]+)*(?::\d+)?)"
_BY_TAG = re.compile(
    r"<(?:script|link|img|image|iframe|embed|object|audio|video|source|track)\b[^<>]*?"
    rf"\s(?:src|href|data|poster)\s*=\s*(?:[\"']\s*)?{_HOST}",
    re.I,
)
_BY_STYLE = re.compile(rf"(?:\burl\(|@import\s)\s*(?:[\"']\s*)?{_HOST}", re.I)
_BY_SCRIPT = re.compile(rf"(?<!href=)[\"'`]({_HOST}/[^\s\"'`<>]*)[\"'`]", re.I)
_RUNS = re.compile(r"<script\b", re.I)
# how loaders name the files that they fetch: loaders of modules, require.js, bokeh and altair
_LIBRARY = re.compile(r"//(?:cdn|unpkg|esm)\b|/npm/|\.(?:m?js|css)(?:[?#]|$)", re.I)
# an embedded library names many files that it loads only on request
_LIBRARY_CHARS = 500_000
_WITHIN = re.compile(r"\ssrcdoc\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.I)
_NAMED = 3
_REMEDIES = (
    (re.compile(r"\bplotly\b", re.I), "to_html(include_plotlyjs=True)"),
    (re.compile(r"\bbokeh\b", re.I), "file_html(plot, INLINE)"),
    (re.compile(r"\bvega\b", re.I), "to_html(inline=True)"),
)


def external_hosts_note(html: str) -> Markup | None:
    """Return a note on the external hosts that a frame blocks and on what to do, or None."""
    hosts = [*dict.fromkeys(_hosts(html))]
    if not hosts:
        return None
    named = ", ".join(hosts[:_NAMED]) + (", ..." if len(hosts) > _NAMED else "")
    missing = f"This HTML loads from {named}: frames here have no network, so that is missing. "
    return element("div", quiet(missing), _remedy(html), style="font-size:.93em;margin:.2em 0")


def _remedy(html: str) -> Markup:
    for library, call in _REMEDIES:
        if library.search(html):
            return joined((code(call), quiet(" brings it along; a picture (PNG) needs nothing.")))
    return quiet("Put it into the HTML itself, or show a picture (PNG).")


def _hosts(html: str) -> Iterator[str]:
    """Yield the hosts that HTML loads from, including those of pages inside it."""
    for page in (html, *(unescape(one or other) for one, other in _WITHIN.findall(html))):
        yield from _BY_TAG.findall(page)
        yield from _BY_STYLE.findall(page)
        if len(page) <= _LIBRARY_CHARS and _RUNS.search(page):
            yield from (host for url, host in _BY_SCRIPT.findall(page) if _LIBRARY.search(url))


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


def framed(html: str) -> Markup:
    """Return a frame that shows HTML separately; its lower right corner makes it higher.

    A line below it names the hosts that the HTML loads from, whose content does not arrive.
    """
    lacking = external_hosts_note(html)
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
