"""Compare what two runs of a cell show: the kinds of its outputs, and their texts."""

from __future__ import annotations

import re
from typing import Any

from nbformat import NotebookNode

_LASTED = re.compile(r"\b\d+(?:\.\d+)?(?= ?(?:µs|ms|s|min)\b)")
_LEFT = re.compile(r"(?<![\d:])\d{1,2}:\d\d(?![\d:])")
_WIDTH = re.compile(r"width:\d+(?:\.\d+)?%")
_IMAGE = re.compile(r"data:image/[\w/+.;,=-]+")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def kinds(cell: NotebookNode) -> list[tuple[Any, ...]]:
    """Return what a cell shows as a test compares it: kinds of outputs, and plain texts.

    How long something took and how long it has left differ, and so may the HTML by the versions
    of libraries.
    """
    return [_kind(output) for output in cell.outputs]


def looks(cell: NotebookNode) -> list[tuple[Any, ...]]:
    """Return what a cell shows in full, its HTML too, but for the bytes of images and times."""
    return [(_kind(output), _html(output)) for output in cell.outputs]


def _kind(output: NotebookNode) -> tuple[Any, ...]:
    if output.output_type == "stream":
        return "stream", output.name, _told(output.text)
    if output.output_type == "error":
        return "error", output.ename, _told(output.evalue)
    return output.output_type, sorted(output.data), _told(output.data.get("text/plain", ""))


def _html(output: NotebookNode) -> str:
    rest = {kind: one for kind, one in output.get("data", {}).items() if kind.startswith("text/")}
    return _timeless(_WIDTH.sub("width:", _IMAGE.sub("image", repr(sorted(rest.items())))))


def _told(text: str) -> str:
    return _timeless(_ANSI.sub("", text))


def _timeless(text: str) -> str:
    return _LEFT.sub("0:00", _LASTED.sub("0", text))
