from __future__ import annotations

import re
from html.parser import HTMLParser

from doublecheck.core.markup import element
from doublecheck.reports import html
from tests.doublecheck.reports.examples import DOUBLE, STAGING


class Page(HTMLParser):
    """What stands in a page: its elements and its text, without the style sheet."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_what_a_platform_answers_is_never_html() -> None:
    """Its markup is text, and its control characters are visible."""
    page = Page(html.render([DOUBLE, STAGING]))

    assert (
        "<script>alert('x')</script> & \u2400\u241b[31m \ufffd ]]> \ufffd \U0001f600" in page.text
    )
    assert "script" not in {tag for tag, _ in page.elements}


def test_the_page_needs_nothing_but_itself() -> None:
    """No element fetches anything, and its policy would not let it."""
    text = html.render([DOUBLE, STAGING])
    page = Page(text)

    fetching = {"script", "link", "img", "iframe", "object", "form"}
    policy = [attrs.get("content") for _, attrs in page.elements if "http-equiv" in attrs]
    assert set() == fetching & {tag for tag, _ in page.elements}
    assert [True] == [str(content).startswith("default-src 'none';") for content in policy]
    assert [] == re.findall(r"url\(|@import", text)
    assert {"#"} == {str(attrs["href"])[0] for tag, attrs in page.elements if tag == "a"}


def test_each_clause_has_an_anchor() -> None:
    """Failures are first."""
    page = Page(html.render([DOUBLE, STAGING]))

    anchors = [attrs["id"] for tag, attrs in page.elements if tag == "tr" and "id" in attrs]
    assert {"INV-04", "INV-05", "PRB-01", "MCP-01", "CTL-04"} == set(anchors)
    assert "INV-04" == anchors[0]


def test_what_was_not_carried_out_is_folded() -> None:
    """Below what was, with the reasons."""
    text = html.render([STAGING])

    visible, folded = text.split('<details class="folded">')
    assert "<summary>1 clause not checked</summary>" in folded
    assert "not offered: no mcp: MCP-01" in folded
    assert ('id="MCP-01"' in folded, 'id="MCP-01"' in visible) == (True, False)


def test_attributes_are_escaped() -> None:
    """Quotes do not end them."""
    assert '<p class="a&quot; onclick=&quot;b" hidden>&lt;</p>' == element(
        "p", "<", class_='a" onclick="b', hidden=True, title=None
    )
