from __future__ import annotations

import re
from html.parser import HTMLParser

from doublecheck.core import markup
from doublecheck.core.markup import element
from doublecheck.reports import html
from tests.doublecheck.reports.examples import DOUBLE, STAGING


class Page(HTMLParser):
    """Collect the elements and the text of a page, without its style sheet."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_platform_answers_are_never_html() -> None:
    """Markup is text, and control characters are visible."""
    page = Page(html.render([DOUBLE, STAGING]))

    assert (
        "<script>alert('x')</script> & \u2400\u241b[31m \ufffd ]]> \ufffd \U0001f600" in page.text
    )
    assert "script" not in {tag for tag, _ in page.elements}


def test_the_page_loads_nothing() -> None:
    """Its policy would forbid it, too."""
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


def test_findings_are_above_the_clauses() -> None:
    """Each is linked to its clauses."""
    text = html.render([STAGING])

    findings, table = text.split("<table", 1)
    assert 'it did not answer: <a href="#PRB-01">PRB-01</a>' in findings
    assert 'id="PRB-01"' in table


def test_checks_that_did_not_run_are_folded() -> None:
    """They follow the others, with reasons."""
    text = html.render([STAGING])

    visible, folded = text.split('<details class="folded">')
    assert "<summary>1 clause not checked</summary>" in folded
    assert "not offered: no mcp" in folded
    assert ('id="MCP-01"' in folded, 'id="MCP-01"' in visible) == (True, False)


def test_attributes_are_escaped() -> None:
    assert '<p class="a&quot; onclick=&quot;b" hidden>&lt;</p>' == element(
        "p", "<", class_='a" onclick="b', hidden=True, title=None
    )


def test_values_are_escaped() -> None:
    hostile = '"><script>x</script>'

    html = markup.box(
        markup.title(hostile, markup.badge(hostile), hostile),
        markup.table([hostile], [[hostile], [markup.code(hostile)]]),
        markup.folded(hostile, markup.pre(hostile), hostile),
        markup.quiet(hostile),
        markup.image(hostile, b"<"),
    )

    assert 11 == html.count("&lt;script&gt;")
    assert "<script" not in html


def test_long_text_is_truncated_with_a_note() -> None:
    """The note says how to get all of it."""
    expected = "xxx\n… 1,997 more characters; result.stdout has all of it"

    assert expected == markup.clipped("x" * 2000, 3, source="result.stdout")
    assert "xxx" == markup.clipped("xxx", 3)


def test_images_may_be_url_safe_base64() -> None:
    """Agents' events use it, kernels standard base64. Invalid base64 is dropped."""
    html = markup.image("image/png", b"\xfb\xff")

    assert html == markup.image_of("image/png", "-_8=") == markup.image_of("image/png", "+/8=")
    assert markup.image_of("image/png", "?") is None
