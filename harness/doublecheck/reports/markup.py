"""Whole pages of HTML that say what they have to without a script.

The policy in their head forbids scripts and every request, should a browser ever be asked for one.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from doublecheck.notebook.display.markup import Markup, element

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


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
