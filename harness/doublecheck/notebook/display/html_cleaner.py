"""Clean HTML from a sandbox or a platform, so that it can be shown in the notebook's own page.

A list says what is harmless: elements, attributes and style properties that only format. nh3
removes everything else. HTML whose meaning would change is not shown in the page: all of it goes
into a frame, and no part of it into the page. Style sheets are never put into the page, because
they would restyle it.
"""

from __future__ import annotations

import re
from collections import Counter
from importlib.util import find_spec

from doublecheck.notebook.display.html_scanner import Broken, Style, Tag, scanned

_LIMIT = 500_000
_DEEPEST = 100  # nh3 takes seconds for deeper nesting
_TAGS = frozenset(
    [
        "a",
        "abbr",
        "b",
        "blockquote",
        "br",
        "caption",
        "center",
        "cite",
        "code",
        "col",
        "colgroup",
        "dd",
        "del",
        "details",
        "dfn",
        "div",
        "dl",
        "dt",
        "em",
        "figcaption",
        "figure",
        "font",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "i",
        "img",
        "ins",
        "kbd",
        "li",
        "mark",
        "ol",
        "p",
        "pre",
        "q",
        "s",
        "samp",
        "section",
        "small",
        "span",
        "strike",
        "strong",
        "sub",
        "summary",
        "sup",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "time",
        "tr",
        "tt",
        "u",
        "ul",
        "var",
        "wbr",
    ]
)
# they need no end tag, and are only inside other elements
_UNCOUNTED = frozenset(
    [
        "br",
        "caption",
        "col",
        "colgroup",
        "dd",
        "dt",
        "hr",
        "img",
        "li",
        "p",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "wbr",
    ]
)
_OF_ALL = frozenset(("align", "class", "dir", "lang", "style", "title", "valign"))
_ATTRIBUTES = {
    "a": {"href"},
    "col": {"span", "width"},
    "colgroup": {"span", "width"},
    "details": {"open"},
    "font": {"color"},
    "img": {"src", "alt", "width", "height"},
    "ol": {"start", "type"},
    "table": {"border", "cellpadding", "cellspacing", "width"},
    "td": {"colspan", "rowspan", "width", "height", "bgcolor"},
    "th": {"colspan", "rowspan", "scope", "width", "height", "bgcolor"},
    "tr": {"bgcolor"},
}
# without a style sheet or a script they have no effect, and the page's own may use their names
_MEANINGLESS = re.compile(r"class|id|name|role|tabindex|aria-[\w-]+|data-[\w-]+|halign|target|rel")
_PROPERTIES = frozenset(
    [
        "background-color",
        "border",
        "border-bottom",
        "border-collapse",
        "border-color",
        "border-left",
        "border-radius",
        "border-right",
        "border-spacing",
        "border-style",
        "border-top",
        "border-width",
        "color",
        "display",
        "font-family",
        "font-size",
        "font-style",
        "font-weight",
        "height",
        "letter-spacing",
        "line-height",
        "list-style",
        "list-style-type",
        "margin",
        "margin-bottom",
        "margin-left",
        "margin-right",
        "margin-top",
        "max-height",
        "max-width",
        "min-height",
        "min-width",
        "opacity",
        "overflow",
        "overflow-x",
        "overflow-y",
        "overflow-wrap",
        "padding",
        "padding-bottom",
        "padding-left",
        "padding-right",
        "padding-top",
        "tab-size",
        "text-align",
        "text-decoration",
        "text-indent",
        "text-transform",
        "vertical-align",
        "white-space",
        "width",
        "word-break",
        "word-wrap",
    ]
)
# no url(), no escapes, no negative values: the element stays in place and sends no requests
_VALUE = re.compile(r"(?:(?!url\(|image\(|-\d|-\.)[\w\s.,%#()'\"!/-])*", re.I)
_LINK = re.compile(r"(?:https?://|mailto:|#).*", re.I | re.S)
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp|svg\+xml)[;,].*", re.I | re.S)


def cleaned(html: str) -> str | None:
    """Return equivalent HTML that is harmless in any page, or None if there is none.

    Also returns None without nh3, which knows how browsers read broken HTML.
    """
    if len(html) > _LIMIT or find_spec("nh3") is None or not _harmless(html):
        return None
    import nh3

    clean = nh3.clean(
        html,
        tags=set(_TAGS),
        clean_content_tags={"script", "style"},
        attributes={tag: set(_OF_ALL | _ATTRIBUTES.get(tag, set())) for tag in _TAGS},
        attribute_filter=_kept,
        url_schemes={"http", "https", "mailto", "data"},
    )
    return clean if _harmless(clean) else None


def _harmless(html: str) -> bool:
    """Whether HTML only formats; a style sheet for data frames, as pandas writes it, is allowed."""
    nested: Counter[str] = Counter()
    try:
        return all(_formats(one, nested) for one in scanned(html))
    except Broken:
        return False


def _formats(one: Tag | Style, nested: Counter[str]) -> bool:
    if isinstance(one, Style):
        return all(_of_frames(rule) for rule in one.sheet.split("}") if rule.strip())
    if one.closes:
        nested[one.name] -= nested[one.name] > 0
        return True
    nested[one.name] += one.name not in _UNCOUNTED
    return (
        one.name in _TAGS
        and sum(nested.values()) <= _DEEPEST
        and all(
            _allowed(one.name, *attribute) or _MEANINGLESS.fullmatch(attribute[0]) is not None
            for attribute in one.attributes
        )
    )


def _kept(tag: str, name: str, value: str) -> str | None:
    if name == "class":  # the page would style other classes
        return "dataframe" if tag == "table" and "dataframe" in value.split() else None
    return value if name == "rel" or _allowed(tag, name, value) else None


def _allowed(tag: str, name: str, value: str) -> bool:
    if name == "style":
        return all(_declares(one) for one in value.split(";") if one.strip())
    if name == "href":
        return _LINK.fullmatch(value.strip()) is not None
    if name == "src":
        return _PICTURE.fullmatch(value.strip()) is not None
    return name in _OF_ALL or name in _ATTRIBUTES.get(tag, ())


def _declares(declaration: str) -> bool:
    name, _, value = declaration.partition(":")
    return name.strip().lower() in _PROPERTIES and _VALUE.fullmatch(value) is not None


def _of_frames(rule: str) -> bool:
    """Whether a rule of a style sheet only applies to data frames."""
    selectors = rule.partition("{")[0].split(",")
    return all(selector.strip().startswith(".dataframe") for selector in selectors)
