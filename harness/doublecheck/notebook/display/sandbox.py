"""The display of a sandbox's answers: the results of code and commands, and the browser."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from doublecheck.notebook.display import bundles, outputs
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
    joined,
    pre,
    quiet,
    table,
    title,
)

if TYPE_CHECKING:
    from doublecheck.values.sandbox import BashResult, BrowserInfo, CodeResult, Output


def code_bundle(shown: CodeResult) -> bundles.Bundle:
    """Return the MIME bundle of a result; a single value also keeps its own MIME types."""
    values = [one.data for one in shown.outputs if one.data]
    alone = values[0] if len(shown.outputs) == 1 and values else {}
    passed = bundles.safe(alone)[0]
    return {**passed, bundles.TEXT: repr(shown), bundles.HTML: str(code_result(shown))}


def code_result(shown: CodeResult) -> Markup:
    """Return the outputs of an execution, and its message if no error says why it failed."""
    parts = list(_code_outputs(shown.outputs))
    if not shown.success and (shown.error is None or shown.status != "error"):
        parts.append(pre(shown.message, tone=BAD))
    return box(*parts)


def _code_outputs(several: tuple[Output, ...]) -> Iterator[Markup]:
    for (kind, name), group in groupby(several, key=lambda one: (one.output_type, one.name)):
        if kind == "stream":
            yield outputs.stream(name, "".join(one.text or "" for one in group))
        else:
            yield from map(outputs.part, group)


def bash_result(shown: BashResult) -> Markup:
    """Return a command, its output, and its exit code."""
    return box(
        title("$", code(clipped(shown.command, 500)), _ended(shown)),
        pre(coloured(clipped(shown.stdout, whole="result.stdout"))) if shown.stdout else None,
        pre(coloured(clipped(shown.stderr, whole="result.stderr")), tone=WARNING)
        if shown.stderr
        else None,
    )


def _ended(shown: BashResult) -> Markup:
    if shown.exit_code is None:
        return badge(shown.status, WARNING)
    return badge(f"exit {shown.exit_code}", BAD if shown.exit_code else GOOD)


def browser_info(shown: BrowserInfo) -> Markup:
    """Return the properties of a browser, without the address that opens it."""
    address = joined([code(str(shown.cdp_url)), quiet("cdp_url.reveal() returns it")], " ")
    rows: list[list[str | None]] = [
        [quiet("browser"), shown.user_agent],
        [quiet("pages"), f"{shown.width} by {shown.height} pixels"],
        [quiet("DevTools"), address],
    ]
    return box(table(["", ""], rows))
