"""What every display is made of: text blocks, images and colours that suit light and dark."""

from __future__ import annotations

import base64
import html
import io

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

PRE = (
    "margin:0;padding:.2em .6em;font-family:monospace;"
    "background:none;color:inherit;white-space:pre-wrap"
)
MARKED = PRE + ";border-left:3px solid {colour}"
ORANGE, RED = "#c77c1e", "#d0453c"
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


def pre(content: str, style: str = PRE) -> str:
    """Return HTML as a block of preformatted text."""
    return f'<pre style="{style}">{content}</pre>'


def image(mime_type: str, content: bytes) -> str:
    """Return an image that needs nothing from elsewhere."""
    encoded = base64.b64encode(content).decode()
    return f'<img src="data:{html.escape(mime_type)};base64,{encoded}" alt="">'


def coloured(text: str) -> str:
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
