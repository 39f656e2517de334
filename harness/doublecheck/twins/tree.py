"""A comparison as a tree for a terminal: parts, calls, differences."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from doublecheck.comparing.differences import Class, Difference
from doublecheck.sanitize import without_controls
from doublecheck.twins import html_parts
from doublecheck.twins.comparison import Compared, Comparison, Part

STYLES = {
    Class.DIVERGES: "bold red",
    Class.ONLY_LIVE: "magenta",
    Class.ONLY_DOUBLE: "magenta",
    Class.ASSUMED: "yellow",
    Class.SAME: "green",
}
_VALUE_CHARS = 120


def show(comparison: Comparison, console: Console) -> None:
    """Print the tree and a line that sums it up."""
    tree = Tree(Text(f"double {comparison.double}, live {comparison.live}"))
    for part in comparison.parts:
        _add_part(tree, part)
    console.print(tree)
    console.print()
    console.print(Text(html_parts.summary(comparison)))


def _add_part(tree: Tree, part: Part) -> None:
    if part.skipped:
        tree.add(
            Text.assemble((part.name, "dim"), (f"  {html_parts.not_carried_out(part)}", "dim"))
        )
        return
    branch = tree.add(_labelled(part.name, part.cls))
    for call in part.calls:
        _add_call(branch, call)


def _add_call(branch: Tree, call: Compared) -> None:
    twig = branch.add(_labelled(call.operation, call.cls))
    for reason, count in _assumed(call).items():
        twig.add(Text(f"{reason} explains {count} difference{'s' if count > 1 else ''}", "dim"))
    for difference in call.differences:
        if difference.cls is not Class.ASSUMED:
            twig.add(_difference(difference))


def _assumed(call: Compared) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for one in call.differences:
        if one.because:
            counts[one.because] = counts.get(one.because, 0) + 1
    return counts


def _difference(difference: Difference) -> Text:
    shown = Text(f"{difference.path}: {difference.kind}", STYLES[difference.cls])
    if difference.kind != "only live":
        shown.append(f"\n  double {_short(difference.double)}", "default")
    if difference.kind != "only double":
        shown.append(f"\n  live   {_short(difference.live)}", "default")
    return shown


def _labelled(name: str, cls: Class) -> Text:
    return Text.assemble(without_controls(name), "  ", (cls.value, STYLES[cls]))


def _short(value: Any) -> str:
    written = without_controls(json.dumps(value, ensure_ascii=False))
    return written if len(written) <= _VALUE_CHARS else written[: _VALUE_CHARS - 1] + "…"
