"""The displays of a sandbox's answers: outputs and results of code and commands, the browser."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from doublecheck.core.frames import framed
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
    image,
    pre,
    scrolled,
    title,
)
from doublecheck.core.trees import tree
from doublecheck.notebook.display.charts import CHART, loads_nothing
from doublecheck.values.executions import Output, images_of

if TYPE_CHECKING:
    from doublecheck.values.executions import BashResult, BrowserInfo, CodeError, CodeResult

TEXT, HTML, MARKDOWN, LATEX, JSON, GEOJSON, SVG = (
    "text/plain",
    "text/html",
    "text/markdown",
    "text/latex",
    "application/json",
    "application/geo+json",
    "image/svg+xml",
)
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_LIMIT = 20_000_000
HTML_LIMIT = 8_000_000  # plotly's library has 4.8 million characters
_TEXT_LIMIT = 200_000
_LIMITS = {HTML: HTML_LIMIT, LATEX: _TEXT_LIMIT, **dict.fromkeys((SVG, *IMAGES), _LIMIT)}
# these commands open a link, load something, set styles, or name parts of the page
_MORE_THAN_LATEX = re.compile(
    r"\\(?:(?:href|url|class|cssId|style|require|unicode|data|bbox|mmlToken)(?![a-z])"
    r"|include|html)",
    re.I,
)
# HTML, characters by name or number, images, schemes that run code or contain data, and diagrams,
# which load images
_MORE_THAN_MARKDOWN = re.compile(
    r"<[a-z/!?]|&#|&\w+;|!\[|(?:script|data|file|blob)\s*:|mermaid", re.I
)
_OPENS_TAG = re.compile(r"<(?=[a-z/!?])", re.I)
_OF_METADATA = ("width", "height", "needs_background", "expanded", "root")

Bundle = dict[str, Any]

_LINES = 40
# IPython's line of dashes and its spaces assume 75 columns; they wrap in a narrower page
_RULE = re.compile(r"^(?:\x1b\[[\d;]*m)*-{60,}(?:\x1b\[[\d;]*m)*\n")
_SPACES = re.compile(r" {3,}(?=Traceback \(most recent call last\))")


def safe(
    data: Mapping[str, Any], metadata: Mapping[str, Any] | None = None
) -> tuple[Bundle, Bundle]:
    """Return a kernel's MIME bundle and metadata, made safe for the page of a notebook.

    It always contains ``text/plain``, which also reports content that is too large or, if nothing
    else remains, not shown.
    """
    bundle: Bundle = {}
    for kind, content in data.items():
        bundle |= _safe(kind, content)
    if HTML not in bundle and SVG in data:
        bundle |= _svg(data[SVG])
    if TEXT not in bundle or (MARKDOWN in data and MARKDOWN not in bundle):
        bundle[TEXT] = _in_words(data)
    bundle[TEXT] = "\n".join((bundle[TEXT], *_too_large(data), *_not_drawn(data, bundle)))
    extras = {kind: _checked(it) for kind, it in (metadata or {}).items() if kind in bundle}
    return bundle, {kind: values for kind, values in extras.items() if values}


def _safe(kind: str, content: Any) -> Bundle:
    if CHART.fullmatch(kind):
        return {kind: content} if _small(content) and loads_nothing(kind, content) else {}
    if kind in (JSON, GEOJSON):  # a map would load its tiles
        return {JSON: content} if _small(content) else {}
    text = _joined(content)
    if kind in IMAGES:
        return {kind: text} if len(text) <= _LIMIT and _is_base64(text) else {}
    if kind == HTML:
        return {HTML: str(framed(text))} if len(text) <= HTML_LIMIT else {}
    if kind == TEXT:
        return {TEXT: clipped(text, _TEXT_LIMIT)}
    if len(text) > _TEXT_LIMIT:
        return {}
    if kind == MARKDOWN and not (_MORE_THAN_MARKDOWN.search(text) or _MORE_THAN_LATEX.search(text)):
        return {MARKDOWN: text}
    if kind == LATEX and not _MORE_THAN_LATEX.search(text):
        return {LATEX: _OPENS_TAG.sub("< ", text)}
    return {}


def _svg(text: Any) -> Bundle:
    drawn = _joined(text)
    return {HTML: str(image(SVG, drawn.encode()))} if len(drawn) <= _LIMIT else {}


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
            yield f"… {kind} has {size:,} characters, too many to show here ({limit:,})"


def _not_drawn(data: Mapping[str, Any], bundle: Bundle) -> Iterator[str]:
    for kind in data:
        if CHART.fullmatch(kind) and kind not in bundle:
            yield (
                f"… {kind} is not drawn here, because it is huge or may load something; "
                "display it as an image, or as HTML that contains its library"
            )


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
    pending, size = [content], 0
    while pending and size < _LIMIT:
        node = pending.pop()
        if isinstance(node, Mapping):
            pending += [*node, *node.values()]
        elif isinstance(node, (list, tuple)):
            pending += node
        size += len(node) if isinstance(node, str) else 8
    return size < _LIMIT


def _checked(metadata: Any) -> Bundle:
    if not isinstance(metadata, Mapping):
        return {}
    return {
        name: metadata[name]
        for name in _OF_METADATA
        if isinstance(metadata.get(name), (int, float, bool))
        or metadata.get(name) in ("light", "dark")
    }


def output(output: Output) -> Markup:
    """Return an output of an execution."""
    return box(_part(output))


def error(error: CodeError) -> Markup:
    """Return the error that ended an execution."""
    return box(traceback(error.traceback or f"{error.ename}: {error.evalue}"))


def code_result(result: CodeResult) -> Bundle:
    """Return the MIME bundle of a result. A single value also keeps its own MIME types."""
    values = [item.data for item in result.outputs if item.data]
    alone = values[0] if len(result.outputs) == 1 and values else {}
    parts = [pre(result.notice, tone=WARNING)] if result.notice else []
    parts += _outputs(result.outputs)
    if not result.success and (result.error is None or result.status != "error"):
        parts.append(pre(result.message, tone=BAD))
    html = str(box(*parts))
    return {**safe(alone)[0], TEXT: repr(result), HTML: html}


def bash_result(result: BashResult) -> Markup:
    """Return a command, its output, and its exit code."""
    if result.exit_code is None:
        outcome = badge(result.status, WARNING)
    else:
        outcome = badge(f"exit {result.exit_code}", BAD if result.exit_code else GOOD)
    return box(
        title("$", code(clipped(result.command, 500)), outcome),
        _stream("stdout", result.stdout) if result.stdout else None,
        _stream("stderr", result.stderr) if result.stderr else None,
    )


def browser_info(info: BrowserInfo) -> Markup:
    """Return the properties of a browser, without the address that opens it."""
    pages = f"{info.width} by {info.height} pixels"
    address = f"{info.cdp_url} (cdp_url.reveal() returns it)"
    return box(*(element("div", line) for line in (info.user_agent, pages, address)))


def traceback(text: str) -> Markup:
    """Return a traceback in its own colours, as wide as its lines of code."""
    narrow = _SPACES.sub("  ", _RULE.sub("", text), count=1)
    return pre(coloured(clipped(narrow)), tone=BAD)


def _outputs(several: tuple[Output, ...]) -> Iterator[Markup]:
    for (kind, name), group in groupby(several, key=lambda item: (item.output_type, item.name)):
        if kind == "stream":
            yield _stream(name, "".join(item.text or "" for item in group))
        else:
            yield from map(_part, group)


def _part(output: Output) -> Markup:
    if output.output_type == "error":
        lines = "\n".join(output.traceback or ())
        return traceback(lines or f"{output.ename}: {output.evalue}")
    if output.output_type == "stream":
        return _stream(output.name, output.text or "")
    return _value(output)


def _stream(name: str | None, text: str) -> Markup:
    """Return the text of a stream, cut to a readable length."""
    coloured_text = coloured(clipped(text, source=f"result.{name}"))
    block = pre(coloured_text, tone=WARNING if name == "stderr" else None)
    return scrolled(block) if text.count("\n") > _LINES else block


def _value(output: Output) -> Markup:
    """Return a value in its richest form that is safe for the page."""
    data = output.data or {}
    images = [image(kind, content) for kind, content in images_of(output)]
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
