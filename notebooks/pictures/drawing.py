"""A terminal's text as an SVG with a background of its own and no font or file from elsewhere."""

from __future__ import annotations

from collections import defaultdict
from io import StringIO
from xml.etree import ElementTree

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

THEME = TerminalTheme(
    (30, 34, 42),
    (214, 218, 226),
    [
        (30, 34, 42),
        (240, 128, 128),
        (126, 211, 149),
        (229, 192, 123),
        (110, 178, 255),
        (214, 150, 235),
        (100, 210, 214),
        (214, 218, 226),
    ],
)
FORMAT = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix, .{unique_id}-title {{
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; white-space: pre;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
_SVG = "{http://www.w3.org/2000/svg}"
_COLUMN = 12.2  # of a character, as rich draws it


def draw(printed: str, columns: int, title: str) -> str:
    """Return a coloured text as SVG."""
    console = Console(
        file=StringIO(), record=True, width=columns, force_terminal=True, color_system="truecolor"
    )
    console.print(Text.from_ansi(printed), highlight=False)
    console.print()  # or the last line is cut off below
    return console.export_svg(title=title, theme=THEME, code_format=FORMAT, unique_id="demo")


def text_of(svg: str) -> str:
    """Return the text that somebody reads in such a picture, line by line."""
    rows: dict[float, str] = defaultdict(str)
    for group in ElementTree.fromstring(svg).iter(f"{_SVG}g"):
        if group.get("class", "").endswith("-matrix"):
            for one in group.iter(f"{_SVG}text"):
                column = round(float(one.get("x", 0)) / _COLUMN)
                row = rows[float(one.get("y", 0))]
                rows[float(one.get("y", 0))] = row.ljust(column) + (one.text or "")
    return "\n".join(rows[y].replace("\xa0", " ").rstrip() for y in sorted(rows)).rstrip()
