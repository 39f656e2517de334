"""Find the tags in a piece of HTML in linear time.

This is not a parser: it raises Broken for HTML that it does not understand. It decides whether HTML
is shown in the page; nh3 then decides which parts are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape

_TAG = re.compile(r"<(?=[a-zA-Z/!?])[^>]*>?")
_NAME = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)")
_ATTRIBUTE = re.compile(r"""\s+([^\s=/>"'<]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?""")
_END = re.compile(r"\s*/?>")
_STYLE_ENDS = re.compile(r"</style\s*>", re.I)


class Broken(Exception):  # noqa: N818 (a condition of the HTML, no error of anybody's)
    """HTML that browsers could read in different ways."""


@dataclass(frozen=True)
class Tag:
    """A tag with its attributes; ``closes`` if it is an end tag."""

    name: str
    attributes: tuple[tuple[str, str], ...] = ()
    closes: bool = False


@dataclass(frozen=True)
class Style:
    """A style sheet."""

    sheet: str


def scanned(html: str) -> Iterator[Tag | Style]:
    """Yield the tags and the style sheets; skip comments and raise Broken for anything else."""
    at = 0
    while found := _TAG.search(html, at):
        at = found.end()
        if html.startswith("<!--", found.start()):
            at = _after(html, "-->", found.start() + 4)
            continue
        tag = _tag(found[0])
        if tag.name == "style" and not tag.closes:
            ends = _STYLE_ENDS.search(html, at)
            if ends is None:
                raise Broken
            yield Style(html[at : ends.start()])
            at = ends.end()
        else:
            yield tag


def _after(html: str, end: str, start: int) -> int:
    found = html.find(end, start)
    if found < 0:
        raise Broken
    return found + len(end)


def _tag(text: str) -> Tag:
    named = _NAME.match(text)
    if named is None:
        raise Broken
    attributes, at = [], named.end()
    while found := _ATTRIBUTE.match(text, at):
        value = next((one for one in found.groups()[1:] if one is not None), "")
        attributes.append((found[1].lower(), unescape(value)))
        at = found.end()
    if not _END.fullmatch(text, at):
        raise Broken
    return Tag(named[2].lower(), tuple(attributes), bool(named[1]))
