"""HTML for notebooks: elements, tables, and the parts of displays."""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from doublecheck.core.notebook_repr import visible

if TYPE_CHECKING:
    Attribute = str | bool | None


_EMPTY = frozenset(("br", "hr", "img", "input", "meta"))

_PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

GOOD, BAD, WARNING, INFO, ODD, QUIET = (
    "#2e8b57",
    "#d0453c",
    "#c77c1e",
    "#4278c9",
    "#9a5bbe",
    "#808080",
)
SHOWN_CHARS = 20_000
_LINE = "1px solid rgba(128,128,128,.3)"
_MONOSPACE = (
    "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace);font-size:.9em"
)
_PRE = (
    f"margin:0;padding:.15em .6em;{_MONOSPACE};line-height:1.45;background:none;color:inherit;"
    "white-space:pre-wrap;overflow-wrap:anywhere;word-break:normal"
)
_CELL = f"padding:.3em .8em .3em 0;border:0;border-top:{_LINE};text-align:{{}};vertical-align:top"
_TERMINAL = re.compile("[\x1b\r\b\x9b]")
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


class Markup(str):
    """HTML text from ``element``, ``joined``, or a cleaned source."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        return str(self)


def element(name: str, *children: str | None, **attributes: Attribute) -> Markup:
    """Return an element. Children that are not Markup are escaped; None is omitted.

    ``class_`` is the attribute ``class``, ``data_x`` is ``data-x``. True gives an attribute without
    a value; False and None give no attribute.
    """
    opened = f"<{name}{''.join(_attribute(*item) for item in attributes.items())}>"
    if name in _EMPTY:
        return Markup(opened)
    return Markup(f"{opened}{joined(children)}</{name}>")


def joined(children: Iterable[str | None], separator: str = "") -> Markup:
    """Return children in sequence. Those that are not Markup are escaped."""
    return Markup(
        _escaped(separator).join(_escaped(child) for child in children if child is not None)
    )


def _escaped(child: str) -> str:
    return child if isinstance(child, Markup) else escape(visible(child))


def _attribute(name: str, value: Attribute) -> str:
    name = name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(visible(str(value)))}"'


def whole_page(title: str, style: str, *body: str | None) -> str:
    """Return a self-contained page without scripts or external resources."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_PAGE_POLICY),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="color-scheme", content="light dark"),
        element("title", title),
        element("style", Markup(style)),
    )
    return f"<!doctype html>\n{element('html', head, element('body', *body), lang='en')}\n"


def box(*children: str | None) -> Markup:
    """Return the box around a whole display."""
    return element("div", *children, style="max-width:72em;line-height:1.5;text-align:left")


def title(text: str, *extras: str | None) -> Markup:
    """Return the title line of a display, followed by badges and the like."""
    return element(
        "div",
        element("b", text),
        *(joined((" ", child)) for child in extras if child is not None),
        style="margin:.2em 0",
    )


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str | None]], *, right: Sequence[str] = ()
) -> Markup:
    """Return a table; the columns named in ``right`` are aligned right, as numbers."""
    sides = ["right" if head in right else "left" for head in heads]
    bare = "background:none"
    head = element("tr", *(_cell("th", *it) for it in zip(heads, sides, strict=True)), style=bare)
    body = [
        element("tr", *(_cell("td", *it) for it in zip(row, sides, strict=True)), style=bare)
        for row in rows
    ]
    style = "border-collapse:collapse;border:0;margin:.3em 0;font-size:.93em"
    above = element("thead", head) if any(heads) else None
    return element("table", above, element("tbody", *body), style=style)


def folded(summary: str, *children: str | None, opened: bool = False) -> Markup:
    """Return children that are folded below a summary, or visible if ``opened``."""
    inner = element("div", *children, style="padding:.2em 0 .3em 1em")
    summed = element("summary", summary, style="cursor:pointer;display:list-item")
    return element("details", summed, inner, open=opened, style="margin:.1em 0")


def badge(text: str, tone: str = QUIET) -> Markup:
    """Return a highlighted word."""
    return element(
        "span",
        text,
        style=f"color:{tone};border:1px solid {tone};border-radius:.7em;padding:0 .55em;"
        "font-size:.85em;white-space:nowrap",
    )


def toned(text: str, tone: str) -> Markup:
    """Return text in one of the tones."""
    return element("span", text, style=f"color:{tone}")


def quiet(text: str) -> Markup:
    """Return text in a muted colour."""
    return element("span", text, style="opacity:.7")


def code(text: str) -> Markup:
    """Return inline code."""
    style = f"{_MONOSPACE};background:none;color:inherit;padding:0;overflow-wrap:anywhere"
    return element("code", text, style=style)


def pre(*children: str | None, tone: str | None = None) -> Markup:
    """Return a block of preformatted text, with a bar in this tone at its left."""
    return element(
        "pre", *children, style=_PRE + (f";border-left:3px solid {tone}" if tone else "")
    )


def scrolled(*children: str | None) -> Markup:
    """Return a part that scrolls if it is long."""
    return element("div", *children, style="max-height:24em;overflow:auto")


def image(mime_type: str, content: bytes) -> Markup:
    """Return an image that is embedded in the page."""
    encoded = base64.b64encode(content).decode()
    source = f"data:{mime_type};base64,{encoded}"
    return element("img", src=source, alt="", style="max-width:100%")


def image_of(mime_type: str, encoded: str) -> Markup | None:
    """Return an image from base64 data, or None if it is not an image."""
    if not mime_type.startswith("image/"):
        return None
    try:
        usual = encoded.replace("-", "+").replace("_", "/")  # events use the URL-safe alphabet
        return image(mime_type, base64.b64decode(usual, validate=True))
    except (binascii.Error, ValueError):
        return None


def clipped(text: str, limit: int = SHOWN_CHARS, *, source: str = "") -> str:
    """Return the beginning of a text and how much is cut. ``source`` names the full text."""
    if len(text) <= limit:
        return text
    where = f"; {source} has all of it" if source else ""
    return f"{text[:limit]}\n… {len(text) - limit:,} more characters{where}"


def coloured(ansi: str) -> Markup:
    """Return text with ANSI colours as HTML."""
    if not _TERMINAL.search(ansi):  # rich is slow to import
        return joined([ansi.rstrip("\n")])
    from rich import console, terminal_theme, text  # slow: 0.1 s

    recorder = console.Console(
        record=True,
        file=io.StringIO(),
        force_terminal=True,
        force_jupyter=False,  # in a notebook, rich would also display it at once
        color_system="truecolor",
    )
    recorder.print(text.Text.from_ansi(ansi), soft_wrap=True)
    # Middle tones, without black and white, because the page may be light or dark.
    theme = terminal_theme.TerminalTheme((255, 255, 255), (128, 128, 128), _COLOURS, _COLOURS)
    html = recorder.export_html(theme=theme, inline_styles=True, code_format="{code}")
    return Markup(html.rstrip("\n"))


def _cell(name: str, content: str | None, side: str) -> Markup:
    weight = "600;white-space:nowrap" if name == "th" else "inherit"
    return element(name, content, style=f"{_CELL.format(side)};font-weight:{weight}")
