"""The frame of an HTML report, and the parts that reports share.

Pages are built from elements, without templates: every text that is not an element is escaped, so a
forgotten filter cannot turn an answer of a platform into HTML. The page has no script, and the
policy in its head forbids scripts and every request. It follows the reader's light or dark mode.
"""

from __future__ import annotations

import re
from importlib import resources
from itertools import groupby

from agentdouble import __version__
from doublecheck.core.markup import Markup, element, joined, whole_page

_MARKS = {">": "request", "<": "answer"}


def page(title: str, *body: str | None) -> str:
    """Return a page with this title."""
    return whole_page(
        title,
        resources.files("doublecheck.reports").joinpath("report.css").read_text("utf-8"),
        *body,
        element("footer", f"doublecheck {__version__}"),
    )


def badge(word: str, text: str | None = None) -> Markup:
    """Return a text in the colours of a verdict or a class, by default that word."""
    return element("span", text or word, class_=f"badge {re.sub('[^a-z]+', '-', word).strip('-')}")


def folded(summary: str, *children: str | None, opened: bool = False) -> Markup:
    """Return children that are hidden until the summary is clicked, unless ``opened``."""
    return element("details", element("summary", summary), *children, open=opened)


def exchanges(text: str) -> Markup:
    """Return a text with the lines of requests (``>``) and answers (``<``) as blocks."""
    blocks = groupby(text.strip("\n").splitlines(), key=lambda line: _MARKS.get(line[:1]))
    texts = ((kind, "\n".join(lines).strip("\n")) for kind, lines in blocks)
    return joined(element("pre", block, class_=kind) for kind, block in texts if block)
