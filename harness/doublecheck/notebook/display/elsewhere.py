"""What HTML loads from elsewhere: its frame has no network, so that part of it stays empty."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from doublecheck.notebook.display.elements import Markup, element, joined
from doublecheck.notebook.display.markup import code, quiet

_HOST = r"(?:https?:)?//([\w-]+(?:\.[\w-]+)*(?::\d+)?)"
_BY_TAG = re.compile(
    r"<(?:script|link|img|image|iframe|embed|object|audio|video|source|track)\b[^<>]*?"
    rf"\s(?:src|href|data|poster)\s*=\s*(?:[\"']\s*)?{_HOST}",
    re.I,
)
_BY_STYLE = re.compile(rf"(?:\burl\(|@import\s)\s*(?:[\"']\s*)?{_HOST}", re.I)
_BY_SCRIPT = re.compile(rf"(?<!href=)[\"'`]({_HOST}/[^\s\"'`<>]*)[\"'`]", re.I)
_RUNS = re.compile(r"<script\b", re.I)
# how loaders name what they fetch: those of modules, of require.js, of bokeh and of altair
_LIBRARY = re.compile(r"//(?:cdn|unpkg|esm)\b|/npm/|\.(?:m?js|css)(?:[?#]|$)", re.I)
# a library that stands in the HTML itself names much that it loads only when it is asked to
_LIBRARY_CHARS = 500_000
_WITHIN = re.compile(r"\ssrcdoc\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.I)
_NAMED = 3
_REMEDIES = (
    (re.compile(r"\bplotly\b", re.I), "to_html(include_plotlyjs=True)"),
    (re.compile(r"\bbokeh\b", re.I), "file_html(plot, INLINE)"),
    (re.compile(r"\bvega\b", re.I), "to_html(inline=True)"),
)


def told(html: str) -> Markup | None:
    """Return a line that says what a frame of HTML lacks, and what to do; None if nothing."""
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
    """Yield the hosts that HTML loads from, those of pages within it included."""
    for page in (html, *(unescape(one or other) for one, other in _WITHIN.findall(html))):
        yield from _BY_TAG.findall(page)
        yield from _BY_STYLE.findall(page)
        if len(page) <= _LIBRARY_CHARS and _RUNS.search(page):
            yield from (host for url, host in _BY_SCRIPT.findall(page) if _LIBRARY.search(url))
