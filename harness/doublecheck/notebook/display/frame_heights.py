"""Estimate the height of HTML from its content: a frame could only report it with a script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_UNSEEN = re.compile(r"<(style|script|title|template)\b|<(!)--", re.I)
_BLOCK = re.compile(r"<(tr|caption|p|div|li|br|h[1-6]|pre|dt|dd|summary|details|hr)\b[^<>]*>", re.I)
_TAG = re.compile(r"<[^<>]*>")
_DRAWN = re.compile(r"<(?:svg|canvas|img|iframe|video|object|embed)\b[^<>]*", re.I)
_HEIGHT = re.compile(
    r"(?<![\w-])height\s*[=:]\s*(?:[\"']\s*)?(\d{1,4}(?:\.\d+)?)(pt)?(?![\d.%]|r?em)", re.I
)
_SHAPE = re.compile(r"\bviewBox\s*=\s*[\"']?[\d.-]+[ ,]+[\d.-]+[ ,]+(\d+)[\d.]*[ ,]+(\d+)", re.I)
_SCRIPT = re.compile(r"<script\b", re.I)
_PX_OF_PT = 4 / 3
# the space around the lines of a block, in Chromium
_AROUND_PX: Mapping[str, int] = {
    "tr": 5,
    "p": 14,
    "pre": 14,
    "hr": 18,
    "h1": 40,
    "h2": 35,
    "h3": 25,
}
_LINE_PX, _LINE_CHARS, _WIDTH_PX, _MARGINS_PX = 20, 115, 860, 24
_LOWEST_PX, _USUAL_PX, _HIGHEST_PX = 60, 460, 600


def height_px(html: str, *, whole: bool = True) -> int:
    """Return a frame height for HTML; of long HTML only the beginning is visible.

    If the HTML is not ``whole``, because scripts load from other hosts, its scripts draw nothing.
    """
    seen = "".join(_seen(html))
    px = _MARGINS_PX + sum(_blocks_px(seen)) + sum(_drawn_px(seen))
    declared = max((_px(*found) for found in _HEIGHT.findall(seen)), default=0)
    runs = _USUAL_PX if whole and not declared and _SCRIPT.search(html) else 0
    return min(max(round(px), round(declared) + _MARGINS_PX, runs, _LOWEST_PX), _HIGHEST_PX)


def _seen(html: str) -> Iterator[str]:
    """Yield HTML without its invisible parts, in linear time."""
    at = 0
    while found := _UNSEEN.search(html, at):
        yield html[at : found.start()]
        ends = "-->" if found[2] else f"</{found[1]}"
        after = re.compile(ends, re.I).search(html, found.end())
        if after is None:
            return
        at = after.end()
    yield html[at:]


def _blocks_px(seen: str) -> Iterator[float]:
    """Yield the heights of blocks of text and rows of tables, from top to bottom."""
    first, *rest = _BLOCK.split(seen)
    yield _lines(first) * _LINE_PX
    for name, text in zip(rest[::2], rest[1::2], strict=True):
        lines = _lines(text, kept=name.lower() == "pre")
        if lines or name.lower() in ("br", "hr"):
            yield lines * _LINE_PX + _AROUND_PX.get(name.lower(), 0)


def _lines(text: str, *, kept: bool = False) -> int:
    bare = _TAG.sub("", text)
    lines = bare.strip("\n").split("\n") if kept else [" ".join(bare.split())]
    return sum(-(-len(line) // _LINE_CHARS) or int(kept) for line in lines)


def _drawn_px(seen: str) -> Iterator[float]:
    """Yield the heights of pictures and the like."""
    for tag in _DRAWN.findall(seen):
        if declared := _HEIGHT.search(tag):
            yield _px(*declared.groups())
        elif shape := _SHAPE.search(tag):
            yield _WIDTH_PX * float(shape[2]) / max(float(shape[1]), 1)
        else:
            yield _USUAL_PX


def _px(number: str, unit: str | None) -> float:
    return float(number) * (_PX_OF_PT if unit else 1)
