"""The displays of a sandbox's answers: outputs and results of code and commands, the browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from doublecheck.notebook.display import bundles
from doublecheck.notebook.display.frames import framed
from doublecheck.notebook.display.markup import (
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
from doublecheck.notebook.display.trees import tree
from doublecheck.values.sandbox import Output, images_of

if TYPE_CHECKING:
    from doublecheck.values.sandbox import BashResult, BrowserInfo, CodeError, CodeResult

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


def code_result(shown: CodeResult) -> bundles.Bundle:
    """Return the MIME bundle of a result; a single value also keeps its own MIME types."""
    values = [each.data for each in shown.outputs if each.data]
    alone = values[0] if len(shown.outputs) == 1 and values else {}
    parts = list(_outputs(shown.outputs))
    if not shown.success and (shown.error is None or shown.status != "error"):
        parts.append(pre(shown.message, tone=BAD))
    html = str(box(*parts))
    return {**bundles.safe(alone)[0], bundles.TEXT: repr(shown), bundles.HTML: html}


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
    safe = bundles.safe({kind: data[kind] for kind in data if kind != bundles.HTML})[0]
    html = data.get(bundles.HTML)
    if isinstance(html, str) and len(html) <= bundles.HTML_LIMIT:
        return framed(html)
    if bundles.LATEX in safe:
        return element("div", safe[bundles.LATEX])  # MathJax finds its dollar signs
    if bundles.JSON in safe:
        return tree(safe[bundles.JSON])
    return pre(coloured(clipped(safe[bundles.TEXT])))
