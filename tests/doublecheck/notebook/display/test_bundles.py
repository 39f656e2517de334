"""Which parts of a kernel's MIME bundle reach the notebook page."""

from __future__ import annotations

import base64
from html.parser import HTMLParser

import pytest

from doublecheck.notebook.display.outputs import safe

PNG = base64.b64encode(b"\x89PNG").decode()
HOSTILE = [
    "<script>parent.document.title = 'x'</script>",
    "<b>only formats</b>",
    "<!-- never ends <b>",
    "</div></td></table></iframe><script>alert(1)</script>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<style>body { display: none }</style>",
    "<plaintext>",
]


class Page(HTMLParser):
    """Collect the elements of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


@pytest.mark.parametrize("html", HOSTILE)
def test_html_is_shown_in_a_frame(html: str) -> None:
    """The HTML is in the page only as the content of a frame without an origin."""
    ((_, box), (_, frame), *_) = Page(safe({"text/html": html})[0]["text/html"]).elements

    assert "allow-scripts" == frame["sandbox"]
    ((_, policy), _, (_, inner)) = Page(frame["srcdoc"] or "").elements
    assert "allow-scripts" == inner["sandbox"]
    assert "default-src 'none'" in str(policy["content"])
    assert str(inner["srcdoc"]).endswith(html)
    assert "overflow:hidden" in str(box["style"])


def test_passive_content_passes_unchanged() -> None:
    """This covers text, images, LaTeX, JSON, Markdown and charts that are data."""
    bundle = {
        "text/plain": "a",
        "image/png": PNG,
        "text/latex": "$x^2$",
        "text/markdown": "# a\n**b**, $x < 3$ and [c](https://example.org)",
        "application/json": {"a": ["<b>"]},
        "application/vnd.vegalite.v5+json": {"mark": "bar"},
        "application/vnd.plotly.v1+json": {"data": []},
    }
    metadata = {"image/png": {"width": 3}, "application/json": {"expanded": True}}

    assert (bundle, metadata) == safe(bundle, {**metadata, "text/html": {"isolated": False}})


@pytest.mark.parametrize(
    "kind",
    ["application/javascript", "application/vnd.jupyter.widget-view+json", "text/x-unheard-of"],
)
def test_active_content_is_dropped(kind: str) -> None:
    """Its text is shown, or at least its MIME type."""
    assert ({"text/plain": "a"}, {}) == safe({kind: "alert(1)", "text/plain": "a"})
    assert ({"text/plain": f"<{kind}>"}, {}) == safe({kind: "alert(1)"})


@pytest.mark.parametrize(
    "markdown",
    [
        "<script>alert(1)</script>",
        "[a](javascript:alert(1))",
        "[a](JavaScript&colon;alert(1))",
        "[a]: java&#115;cript:alert(1)\n\n[a]",
        "![pixel](https://example.org/pixel.png)",
    ],
)
def test_unsafe_markdown_is_shown_as_source(markdown: str) -> None:
    bundle = {"text/markdown": f"**b** {markdown}", "text/plain": "<Markdown>"}

    assert ({"text/plain": f"**b** {markdown}"}, {}) == safe(bundle)


def test_svg_is_shown_as_an_image() -> None:
    """An image never runs the scripts of an SVG."""
    drawing = "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"

    ((tag, image),) = Page(safe({"image/svg+xml": drawing})[0]["text/html"]).elements

    assert "img" == tag
    encoded = str(image["src"]).removeprefix("data:image/svg+xml;base64,")
    assert drawing == base64.b64decode(encoded).decode()


def test_latex_with_links_is_shown_as_text() -> None:
    expected = {"text/plain": "y"}

    assert (expected, {}) == safe({"text/latex": r"$\href{javascript:x}{y}$", "text/plain": "y"})


def test_invalid_images_are_dropped() -> None:
    """Their metadata is dropped, too."""
    broken = safe({"image/png": '"><script>', "text/plain": "a"}, {"image/png": {"width": 1}})

    assert ({"text/plain": "a"}, {}) == broken


def test_huge_content_is_truncated() -> None:
    """The text says what is missing."""
    bundle, _ = safe(
        {
            "text/plain": "x" * 1_000_000,
            "text/html": "x" * 9_000_000,
            "application/json": ["x" * 100] * 1_000_000,
        }
    )

    assert {"text/plain"} == set(bundle)
    assert [
        "… 800,000 more characters",
        "… text/html has 9,000,000 characters, too many to show here (8,000,000)",
    ] == bundle["text/plain"].splitlines()[-2:]
