"""How results look in a notebook: escaped HTML, no assets, readable on light and dark."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from doublecheck.results import Output, images_of

if TYPE_CHECKING:
    from doublecheck.results import AgentEvent, CodeResult

_PRE = (
    "margin:0;padding:.2em .6em;font-family:monospace;"
    "background:none;color:inherit;white-space:pre-wrap"
)
_MARKED = _PRE + ";border-left:3px solid {colour}"
_ORANGE, _RED = "#c77c1e", "#d0453c"
_COLOURS = [
    (128, 128, 128),
    (208, 69, 60),
    (46, 139, 87),
    (183, 121, 31),
    (66, 120, 201),
    (154, 91, 190),
    (31, 143, 158),
    (128, 128, 128),
]
# Middle tones: the page may be light or dark, so neither black nor white is among them.
_THEME = TerminalTheme((255, 255, 255), (128, 128, 128), _COLOURS, _COLOURS)


def render(result: CodeResult) -> str:
    """Return the outputs of an execution as HTML."""
    parts = [part for output in result.outputs for part in _parts(output)]
    if not result.success and result.error is None:
        parts.append(_pre(html.escape(result.message), _MARKED.format(colour=_RED)))
    return f"<div>{''.join(parts)}</div>"


def render_events(events: Sequence[AgentEvent]) -> str:
    """Return what users and agents said and did as HTML, one line each."""
    return f"<div>{''.join(_event(event) for event in events)}</div>"


def _event(event: AgentEvent) -> str:
    said = [html.escape(event.text)] if event.text else []
    said += [f"calls {html.escape(str(call.get('name')))}" for call in event.function_calls]
    said += [f"answers {html.escape(str(r.get('name')))}" for r in event.function_responses]
    if event.error is not None:
        said.append(html.escape(event.error))
    style = _PRE if event.error is None else _MARKED.format(colour=_RED)
    author = html.escape(event.author or event.role or "?")
    return _pre(f"<b>{author}</b> {' '.join(said)}", style)


def _parts(output: Output) -> Iterator[str]:
    if output.output_type == "error":
        traceback = "\n".join(output.traceback or ()) or f"{output.ename}: {output.evalue}"
        yield _pre(_coloured(traceback), _MARKED.format(colour=_RED))
    elif output.output_type == "stream":
        style = _MARKED.format(colour=_ORANGE) if output.name == "stderr" else _PRE
        yield _pre(_coloured(output.text or ""), style)
    else:
        images = [_image(mime_type, content) for mime_type, content in images_of(output)]
        text = str((output.data or {}).get("text/plain", ""))
        yield from images or [_pre(html.escape(text), _PRE)]


def _pre(content: str, style: str) -> str:
    return f'<pre style="{style}">{content}</pre>'


def _image(mime_type: str, content: bytes) -> str:
    encoded = base64.b64encode(content).decode()
    return f'<img src="data:{html.escape(mime_type)};base64,{encoded}" alt="">'


def _coloured(text: str) -> str:
    """Return text with ANSI colours as escaped HTML."""
    console = Console(
        record=True,
        file=io.StringIO(),
        force_terminal=True,
        force_jupyter=False,  # in a notebook, rich would display it at once, and a second time
        color_system="truecolor",
    )
    console.print(Text.from_ansi(text), soft_wrap=True)
    return console.export_html(theme=_THEME, inline_styles=True, code_format="{code}").rstrip("\n")
