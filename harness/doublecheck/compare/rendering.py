"""A comparison as text for a terminal, and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from agentdouble.core import terminal
from doublecheck.compare.differences import Class, Comparison, ConversationPart, Difference
from doublecheck.core.notebook_repr import counted, without_controls
from doublecheck.wire.exchanges import Exchange

_FORMAT = "doublecheck-comparison/1"
_STYLES = {
    Class.DIVERGES: "bold red",
    Class.ONLY_LIVE: "magenta",
    Class.ONLY_DOUBLE: "magenta",
    Class.ASSUMED: "yellow",
    Class.SAME: "green",
}
_VALUE_CHARS = 120


def show(comparison: Comparison, console: Console | None = None) -> None:
    """Print the parts, calls and differences as a tree, and a summary line."""
    tree = Tree(Text(f"double {comparison.double}, {comparison.name} {comparison.live}"))
    for part in comparison.parts:
        if part.skipped:
            tree.add(Text(f"{part.name}  skipped: {part.skipped}", "dim"))
            continue
        if part.only:
            tree.add(
                Text.assemble(without_controls(part.name), "  ", (part.only, _STYLES[part.cls]))
            )
            continue
        branch = tree.add(_labelled(part.name, part.cls))
        for call in part.calls:
            twig = branch.add(_labelled(call.operation, call.cls))
            reasons = Counter(it.because for it in call.differences if it.because)
            for reason, count in reasons.items():
                twig.add(Text(f"{reason} explains {counted(count, 'difference')}", "dim"))
            for difference in call.differences:
                if difference.because is None:
                    twig.add(_difference(difference, comparison.name))
    console = console or terminal.console()
    console.print(tree)
    console.print()
    console.print(Text(comparison.summary()))


def document(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as a document: the class of each call and its differences."""
    return {
        "format": _FORMAT,
        "double": comparison.double,
        "live": comparison.live,
        "class": comparison.outcome,
        "summary": {cls.value: count for cls, count in comparison.counts().items()},
        "parts": [_part(part) for part in comparison.parts],
    }


def _difference(difference: Difference, name: str) -> Text:
    width = max(len("double"), len(name))
    text = Text(f"{difference.path}: {difference.kind}", _STYLES[difference.cls])
    if difference.kind != "only live":
        text.append(f"\n  {'double':{width}} {_short(difference.double)}", "default")
    if difference.kind != "only double":
        text.append(f"\n  {name:{width}} {_short(difference.live)}", "default")
    return text


def _labelled(name: str, cls: Class) -> Text:
    return Text.assemble(without_controls(name), "  ", (cls.value, _STYLES[cls]))


def _short(value: Any) -> str:
    written = without_controls(json.dumps(value, ensure_ascii=False))
    return written if len(written) <= _VALUE_CHARS else written[: _VALUE_CHARS - 1] + "…"


def _part(part: ConversationPart) -> dict[str, Any]:
    return {
        "name": part.name,
        "class": None if part.skipped else part.cls.value,
        "skipped": part.skipped,
        "only": part.only or None,
        "calls": [
            {
                "operation": call.operation,
                "class": call.cls.value,
                "double": _exchange(call.double),
                "live": _exchange(call.live),
                "differences": [
                    {"class": difference.cls.value, **vars(difference)}
                    for difference in call.differences
                ],
            }
            for call in part.calls
        ],
    }


def _exchange(exchange: Exchange | None) -> dict[str, Any] | None:
    if exchange is None:
        return None
    request = exchange.request
    headers = {name.lower(): value for name, value in exchange.headers.items()}
    return {
        "request": {
            "method": request.method,
            "url": request.url,
            "body": request.content.decode("utf-8", "replace"),
        },
        "status": exchange.status,
        "error": exchange.error,
        "content_type": headers.get("content-type"),
        "body": exchange.body.decode("utf-8", "replace"),
    }
