"""MIME bundles of a kernel, made safe for a notebook that does not trust it.

Content that can only be displayed passes unchanged: text, images, LaTeX, JSON, charts as data, and
Markdown without HTML, images and unusual links. HTML is shown in a separate frame. Code that runs in
the page (scripts, widgets) does not pass.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from doublecheck.notebook.display.frames import framed
from doublecheck.notebook.display.markup import clipped, image

TEXT, HTML, MARKDOWN, LATEX, JSON, SVG = (
    "text/plain",
    "text/html",
    "text/markdown",
    "text/latex",
    "application/json",
    "image/svg+xml",
)
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_CHART = re.compile(
    r"application/(?:vnd\.(?:plotly\.v\d+|vega(?:lite)?\.v\d+)|vnd\.dataresource|geo)\+json"
)
_LIMIT = 20_000_000
HTML_LIMIT = 8_000_000  # plotly's library has 4.8 million characters
_TEXT_LIMIT = 200_000
_LIMITS = {HTML: HTML_LIMIT, LATEX: _TEXT_LIMIT, **dict.fromkeys((SVG, *IMAGES), _LIMIT)}
# these commands open a link, load something, or name parts of the page
_MORE_THAN_LATEX = re.compile(
    r"\\(?:href|url|class|cssId|style|require|unicode|include\w*|data)\b", re.I
)
# HTML, characters by name or number, images, and schemes that run code or contain data
_MORE_THAN_MARKDOWN = re.compile(r"<[a-z/!?]|&#|&\w+;|!\[|(?:script|data|file|blob)\s*:", re.I)
_OPENS_TAG = re.compile(r"<(?=[a-z/!?])", re.I)
_OF_METADATA = ("width", "height", "needs_background", "expanded", "root")

Bundle = dict[str, Any]


def safe(
    data: Mapping[str, Any], metadata: Mapping[str, Any] | None = None
) -> tuple[Bundle, Bundle]:
    """Return a kernel's MIME bundle and metadata, made safe for the page of a notebook.

    It always contains ``text/plain``, which also reports content that is too large or, if nothing
    else is left, not shown.
    """
    kept: Bundle = {}
    for kind, content in data.items():
        kept |= _safe(kind, content)
    if HTML not in kept and SVG in data:
        kept |= _svg(data[SVG])
    if TEXT not in kept or (MARKDOWN in data and MARKDOWN not in kept):
        kept[TEXT] = _in_words(data)
    kept[TEXT] = "\n".join((kept[TEXT], *_too_large(data)))
    known = {kind: _known(values) for kind, values in (metadata or {}).items() if kind in kept}
    return kept, {kind: values for kind, values in known.items() if values}


def _safe(kind: str, content: Any) -> Bundle:
    if _CHART.fullmatch(kind) or kind == JSON:
        return {kind: content} if _small(content) else {}
    text = _joined(content)
    if kind in IMAGES:
        return {kind: text} if len(text) <= _LIMIT and _is_base64(text) else {}
    make = _MAKE.get(kind)
    return make(text) if make else {}


def _html(text: str) -> Bundle:
    return {HTML: str(framed(text))} if len(text) <= HTML_LIMIT else {}


def _markdown(text: str) -> Bundle:
    passes = len(text) <= _TEXT_LIMIT and not _MORE_THAN_MARKDOWN.search(text)
    return {MARKDOWN: text} if passes else {}


def _latex(text: str) -> Bundle:
    if len(text) > _TEXT_LIMIT or _MORE_THAN_LATEX.search(text):
        return {}
    return {LATEX: _OPENS_TAG.sub("< ", text)}


def _svg(text: Any) -> Bundle:
    drawn = _joined(text)
    return {HTML: str(image(SVG, drawn.encode()))} if len(drawn) <= _LIMIT else {}


def _text(text: str) -> Bundle:
    return {TEXT: clipped(text, _TEXT_LIMIT)}


_MAKE: Mapping[str, Callable[[str], Bundle]] = {
    TEXT: _text,
    HTML: _html,
    MARKDOWN: _markdown,
    LATEX: _latex,
}


def _in_words(data: Mapping[str, Any]) -> str:
    """Return a placeholder for a bundle without text."""
    for kind in (MARKDOWN, LATEX):
        if kind in data:
            return clipped(_joined(data[kind]), _TEXT_LIMIT)
    return f"<{', '.join(sorted(map(str, data))) or 'nothing'}>"


def _too_large(data: Mapping[str, Any]) -> Iterator[str]:
    for kind, limit in _LIMITS.items():
        size = len(_joined(data.get(kind)))
        if size > limit:
            yield f"… {kind} has {size:,} characters, too many to be shown here ({limit:,})"


def _joined(content: Any) -> str:
    """Return text that the notebook format may store as a list of lines."""
    if isinstance(content, (list, tuple)):
        return "".join(map(str, content))
    return "" if content is None else str(content)


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _small(content: Any) -> bool:
    """Whether a document is small enough for a page."""
    left, size = [content], 0
    while left and size < _LIMIT:
        node = left.pop()
        if isinstance(node, Mapping):
            left += [*node, *node.values()]
        elif isinstance(node, (list, tuple)):
            left += node
        size += len(node) if isinstance(node, str) else 8
    return size < _LIMIT


def _known(metadata: Any) -> Bundle:
    if not isinstance(metadata, Mapping):
        return {}
    return {
        name: metadata[name]
        for name in _OF_METADATA
        if isinstance(metadata.get(name), (int, float, bool))
        or metadata.get(name) in ("light", "dark")
    }
