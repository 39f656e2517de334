"""HTML by construction: what is not Markup is escaped, so no answer of a platform is ever HTML.

Enough for pages that say what they have to without a script; the policy in their head forbids
scripts and every request, should a browser ever be asked for one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from html import escape
from importlib import resources
from typing import TYPE_CHECKING

from doublecheck.reports.visible import visible

_EMPTY = frozenset(("br", "input", "meta"))
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


class Markup(str):
    """Text that is HTML already; ``element`` and ``joined`` alone make it."""

    __slots__ = ()


if TYPE_CHECKING:
    Attribute = str | bool | None


def element(name: str, *children: str | None, **attributes: Attribute) -> Markup:
    """Return an element; children that are no Markup are escaped, and None is left out.

    ``class_`` is the attribute ``class``, ``data_x`` is ``data-x``; True stands for an
    attribute without a value, False and None for none.
    """
    opened = f"<{name}{''.join(_attribute(*one) for one in attributes.items())}>"
    if name in _EMPTY:
        return Markup(opened)
    return Markup(f"{opened}{joined(children)}</{name}>")


def joined(children: Iterable[str | None], separator: str = "") -> Markup:
    """Return children one after the other, escaped where they are no Markup."""
    return Markup(
        escape(separator).join(_escaped(child) for child in children if child is not None)
    )


def page(title: str, *body: str | None, styles: str = "") -> str:
    """Return a whole page that needs nothing but itself; ``styles`` come after the common ones."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="color-scheme", content="light dark"),
        element("title", title),
        element("style", Markup(_common_styles() + styles)),
    )
    return f"<!doctype html>\n{element('html', head, element('body', *body), lang='en')}\n"


@cache
def _common_styles() -> str:
    return resources.files("doublecheck.reports").joinpath("page.css").read_text("utf-8")


def _escaped(child: str) -> str:
    return child if isinstance(child, Markup) else escape(visible(child))


def _attribute(name: str, value: Attribute) -> str:
    name = name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(visible(str(value)))}"'
