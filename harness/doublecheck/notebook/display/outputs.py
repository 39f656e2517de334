"""The display of one output of an execution."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from doublecheck.notebook.display import bundles, markdown
from doublecheck.notebook.display.frames import framed
from doublecheck.notebook.display.html_cleaner import cleaned
from doublecheck.notebook.display.markup import (
    BAD,
    WARNING,
    Markup,
    box,
    clipped,
    coloured,
    element,
    image,
    pre,
    scrolled,
)
from doublecheck.notebook.display.trees import tree
from doublecheck.values.sandbox import Output, images_of

if TYPE_CHECKING:
    from doublecheck.values.sandbox import CodeError

_LINES = 40
# IPython's line of dashes and its spaces are made for 75 columns; they wrap in a narrower page
_RULE = re.compile(r"^(?:\x1b\[[\d;]*m)*-{60,}(?:\x1b\[[\d;]*m)*\n")
_SPACES = re.compile(r" {3,}(?=Traceback \(most recent call last\))")


def output(shown: Output) -> Markup:
    """Return an output of an execution."""
    return box(part(shown))


def error(shown: CodeError) -> Markup:
    """Return the error that ended an execution."""
    return box(traceback(shown.traceback or f"{shown.ename}: {shown.evalue}"))


def part(shown: Output) -> Markup:
    """Return an output as part of a display."""
    if shown.output_type == "error":
        lines = "\n".join(shown.traceback or ())
        return traceback(lines or f"{shown.ename}: {shown.evalue}")
    if shown.output_type == "stream":
        return stream(shown.name, shown.text or "")
    return value(shown)


def traceback(text: str) -> Markup:
    """Return a traceback in its own colours, as wide as its lines of code."""
    narrow = _SPACES.sub("  ", _RULE.sub("", text), count=1)
    return pre(coloured(clipped(narrow)), tone=BAD)


def stream(name: str | None, text: str) -> Markup:
    """Return the text of a stream, cut to a readable length."""
    shown = coloured(clipped(text, whole=f"result.{name}"))
    block = pre(shown, tone=WARNING if name == "stderr" else None)
    return scrolled(block) if text.count("\n") > _LINES else block


def value(shown: Output) -> Markup:
    """Return a value in its richest form that is safe for the page."""
    data = shown.data or {}
    html = data.get(bundles.HTML)
    clean = cleaned(html) if isinstance(html, str) else None
    images = [image(kind, content) for kind, content in images_of(shown)]
    if clean is not None or images:
        return element("div", *([Markup(clean)] if clean is not None else images))
    return _formatted(data) or _framed(html) or _text(data)


def _formatted(data: Mapping[str, Any]) -> Markup | None:
    if isinstance(data.get(bundles.MARKDOWN), str):
        html = markdown.rendered(data[bundles.MARKDOWN])
        return None if html is None else element("div", Markup(html))
    latex = bundles.safe(data)[0].get(bundles.LATEX) if bundles.LATEX in data else None
    if isinstance(latex, str):
        return element("div", latex)  # MathJax finds its dollar signs
    return tree(data[bundles.JSON]) if bundles.JSON in data else None


def _framed(html: Any) -> Markup | None:
    return framed(html) if isinstance(html, str) and len(html) <= bundles.HTML_LIMIT else None


def _text(data: Mapping[str, Any]) -> Markup:
    return pre(coloured(clipped(bundles.safe(data)[0][bundles.TEXT])))
