"""How the result of running code looks."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING

from doublecheck.display.markup import MARKED, ORANGE, PRE, RED, coloured, image, pre
from doublecheck.results import Output, images_of

if TYPE_CHECKING:
    from doublecheck.results import CodeResult


def render(result: CodeResult) -> str:
    """Return the outputs of an execution as HTML."""
    parts = [part for output in result.outputs for part in _parts(output)]
    if not result.success and result.error is None:
        parts.append(pre(html.escape(result.message), MARKED.format(colour=RED)))
    return f"<div>{''.join(parts)}</div>"


def _parts(output: Output) -> Iterator[str]:
    if output.output_type == "error":
        traceback = "\n".join(output.traceback or ()) or f"{output.ename}: {output.evalue}"
        yield pre(coloured(traceback), MARKED.format(colour=RED))
    elif output.output_type == "stream":
        style = MARKED.format(colour=ORANGE) if output.name == "stderr" else PRE
        yield pre(coloured(output.text or ""), style)
    else:
        images = [image(mime_type, content) for mime_type, content in images_of(output)]
        text = str((output.data or {}).get("text/plain", ""))
        yield from images or [pre(html.escape(text))]
