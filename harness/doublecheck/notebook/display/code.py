"""How the result of running code looks: as its outputs do below a cell."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from doublecheck.notebook.display import bundles, outputs
from doublecheck.notebook.display.elements import Markup
from doublecheck.notebook.display.markup import BAD, box, pre

if TYPE_CHECKING:
    from doublecheck.results import CodeResult, Output


def bundle(shown: CodeResult) -> bundles.Bundle:
    """Return a result for a notebook; a value that is all of it passes in its own shapes, too."""
    values = [one.data for one in shown.outputs if one.data]
    alone = values[0] if len(shown.outputs) == 1 and values else {}
    passed = bundles.safe(alone)[0]
    return {**passed, bundles.TEXT: repr(shown), bundles.HTML: str(result(shown))}


def result(shown: CodeResult) -> Markup:
    """Return the outputs of an execution, and its message where no error says why it failed."""
    parts = list(_parts(shown.outputs))
    if not shown.success and (shown.error is None or shown.status != "error"):
        parts.append(pre(shown.message, tone=BAD))
    return box(*parts)


def _parts(several: tuple[Output, ...]) -> Iterator[Markup]:
    for (kind, name), group in groupby(several, key=lambda one: (one.output_type, one.name)):
        if kind == "stream":
            yield outputs.stream(name, "".join(one.text or "" for one in group))
        else:
            yield from map(outputs.part, group)
