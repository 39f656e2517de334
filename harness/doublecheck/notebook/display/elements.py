"""HTML by construction: what is not Markup is escaped, so no answer of a platform is ever HTML."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from doublecheck.sanitize import visible

_EMPTY = frozenset(("br", "hr", "img", "input", "meta"))


class Markup(str):
    """Text that is HTML already: of ``element`` and ``joined``, or made harmless before."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        return str(self)


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
        _escaped(separator).join(_escaped(child) for child in children if child is not None)
    )


def _escaped(child: str) -> str:
    return child if isinstance(child, Markup) else escape(visible(child))


def _attribute(name: str, value: Attribute) -> str:
    name = name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(visible(str(value)))}"'
