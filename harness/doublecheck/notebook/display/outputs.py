"""The displays of a sandbox's answers: outputs and results of code and commands, the browser."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from doublecheck.core.markup import (
    BAD,
    GOOD,
    WARNING,
    Markup,
    badge,
    box,
    clipped,
    code,
    coloured,
    element,
    framed,
    image,
    pre,
    scrolled,
    title,
    tree,
)
from doublecheck.values.sandbox import Output, images_of

if TYPE_CHECKING:
    from doublecheck.values.sandbox import BashResult, BrowserInfo, CodeError, CodeResult

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


_LINES = 40
# IPython's line of dashes and its spaces are made for 75 columns; they wrap in a narrower page
_RULE = re.compile(r"^(?:\x1b\[[\d;]*m)*-{60,}(?:\x1b\[[\d;]*m)*\n")
_SPACES = re.compile(r" {3,}(?=Traceback \(most recent call last\))")


def output(shown: Output) -> Markup:
    """Return an output of an execution."""
    return box(_part(shown))


def error(shown: CodeError) -> Markup:
    """Return the error that ended an execution."""
    return box(traceback(shown.traceback or f"{shown.ename}: {shown.evalue}"))


def code_result(shown: CodeResult) -> Bundle:
    """Return the MIME bundle of a result; a single value also keeps its own MIME types."""
    values = [each.data for each in shown.outputs if each.data]
    alone = values[0] if len(shown.outputs) == 1 and values else {}
    parts = list(_outputs(shown.outputs))
    if not shown.success and (shown.error is None or shown.status != "error"):
        parts.append(pre(shown.message, tone=BAD))
    html = str(box(*parts))
    return {**safe(alone)[0], TEXT: repr(shown), HTML: html}


def bash_result(shown: BashResult) -> Markup:
    """Return a command, its output, and its exit code."""
    if shown.exit_code is None:
        outcome = badge(shown.status, WARNING)
    else:
        outcome = badge(f"exit {shown.exit_code}", BAD if shown.exit_code else GOOD)
    return box(
        title("$", code(clipped(shown.command, 500)), outcome),
        _stream("stdout", shown.stdout) if shown.stdout else None,
        _stream("stderr", shown.stderr) if shown.stderr else None,
    )


def browser_info(shown: BrowserInfo) -> Markup:
    """Return the properties of a browser, without the address that opens it."""
    pages = f"{shown.width} by {shown.height} pixels"
    address = f"{shown.cdp_url} (cdp_url.reveal() returns it)"
    return box(*(element("div", line) for line in (shown.user_agent, pages, address)))


def traceback(text: str) -> Markup:
    """Return a traceback in its own colours, as wide as its lines of code."""
    narrow = _SPACES.sub("  ", _RULE.sub("", text), count=1)
    return pre(coloured(clipped(narrow)), tone=BAD)


def _outputs(several: tuple[Output, ...]) -> Iterator[Markup]:
    for (kind, name), group in groupby(several, key=lambda each: (each.output_type, each.name)):
        if kind == "stream":
            yield _stream(name, "".join(each.text or "" for each in group))
        else:
            yield from map(_part, group)


def _part(shown: Output) -> Markup:
    if shown.output_type == "error":
        lines = "\n".join(shown.traceback or ())
        return traceback(lines or f"{shown.ename}: {shown.evalue}")
    if shown.output_type == "stream":
        return _stream(shown.name, shown.text or "")
    return _value(shown)


def _stream(name: str | None, text: str) -> Markup:
    """Return the text of a stream, cut to a readable length."""
    shown = coloured(clipped(text, whole=f"result.{name}"))
    block = pre(shown, tone=WARNING if name == "stderr" else None)
    return scrolled(block) if text.count("\n") > _LINES else block


def _value(shown: Output) -> Markup:
    """Return a value in its richest form that is safe for the page."""
    data = shown.data or {}
    images = [image(kind, content) for kind, content in images_of(shown)]
    if images:
        return element("div", *images)
    harmless = safe({kind: data[kind] for kind in data if kind != HTML})[0]
    html = data.get(HTML)
    if isinstance(html, str) and len(html) <= HTML_LIMIT:
        return framed(html)
    if LATEX in harmless:
        return element("div", harmless[LATEX])  # MathJax finds its dollar signs
    if JSON in harmless:
        return tree(harmless[JSON])
    return pre(coloured(clipped(harmless[TEXT])))
