"""How the result of running code looks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from doublecheck.display.elements import Markup
from doublecheck.display.markup import BAD, WARNING, box, coloured, image, pre
from doublecheck.results import Output, images_of

if TYPE_CHECKING:
    from doublecheck.results import CodeResult


def render(result: CodeResult) -> Markup:
    """Return the outputs of an execution as HTML."""
    parts = [part for output in result.outputs for part in _parts(output)]
    if not result.success and result.error is None:
        parts.append(pre(result.message, tone=BAD))
    return box(*parts)


def _parts(output: Output) -> Iterator[Markup]:
    if output.output_type == "error":
        traceback = "\n".join(output.traceback or ()) or f"{output.ename}: {output.evalue}"
        yield pre(coloured(traceback), tone=BAD)
    elif output.output_type == "stream":
        yield pre(coloured(output.text or ""), tone=WARNING if output.name == "stderr" else None)
    else:
        images = [image(mime_type, content) for mime_type, content in images_of(output)]
        yield from images or [pre(str((output.data or {}).get("text/plain", "")))]
