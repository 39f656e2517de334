"""Display of code results, and which parts of a kernel's MIME bundle reach the page."""

from __future__ import annotations

import base64
from html.parser import HTMLParser

import pytest

from doublecheck.notebook.display.outputs import safe
from doublecheck.results import CodeResult, Output


def render(*outputs: Output, status: str = "ok") -> str:
    result = CodeResult(status == "ok", status, "too long", outputs, 1, "s-1", "")
    return str(result._repr_mimebundle_(include=None, exclude=None)["text/html"])


def test_printed_text_is_escaped() -> None:
    assert ">&lt;script&gt; &amp;</pre>" in render(
        Output("stream", name="stdout", text="<script> &\n")
    )


def test_a_value_is_shown_in_its_richest_format() -> None:
    """HTML is framed, a formula keeps its dollars and JSON is a tree."""
    table = {"text/plain": "0 a", "text/html": "<table><tr><td>a</td></tr></table>"}
    formula = {"text/plain": "x**2", "text/latex": "$$x^2$$"}
    tree = {"text/plain": "<JSON>", "application/json": {"a": "b" * 100}}

    assert "<iframe" in render(Output("execute_result", data=table))
    assert "<div>$$x^2$$</div>" in render(Output("display_data", data=formula))
    assert "<details open" in render(Output("display_data", data=tree))


def test_a_single_value_keeps_its_mime_types() -> None:
    """The notebook can then render a chart or a formula."""
    data = {"text/plain": "<Chart>", "application/vnd.vegalite.v5+json": {"mark": "bar"}}
    chart = Output("execute_result", data=data)
    alone = CodeResult(True, "ok", "", (chart,), 1, "s-1", "")
    two_charts = CodeResult(True, "ok", "", (chart, chart), 1, "s-1", "")

    assert {"text/plain", "text/html", "application/vnd.vegalite.v5+json"} == set(
        alone._repr_mimebundle_()
    )
    assert {"text/plain", "text/html"} == set(two_charts._repr_mimebundle_())
    assert repr(alone) == alone._repr_mimebundle_()["text/plain"]


def test_html_of_a_value_stays_in_a_frame() -> None:
    value = Output("execute_result", data={"text/plain": "a < b", "text/html": "<b onload=1>"})

    assert "<b " not in render(value)
    assert 'sandbox="allow-scripts"' in render(value)


def test_long_output_is_truncated() -> None:
    """The result has all of it."""
    html = render(*[Output("stream", name="stdout", text="x" * 10_000)] * 3)

    assert "… 10,000 more characters; result.stdout has all of it" in html


def test_images_are_inlined() -> None:
    """An image replaces its text."""
    png = base64.b64encode(b"\x89PNG").decode()
    image = Output("display_data", data={"text/plain": "<Figure>", "image/png": png})

    assert f'<img src="data:image/png;base64,{png}"' in render(image)
    assert "Figure" not in render(image)


def test_a_traceback_keeps_its_colours() -> None:
    """ANSI colours become shades that are legible on light and dark pages."""
    error = Output("error", ename="E", evalue="v", traceback=("\x1b[31mE\x1b[0m: <v>",))

    html = render(error, status="error")

    assert "border-left:3px solid #d0453c" in html
    assert (
        '<span style="color: #d0453c; text-decoration-color: #d0453c">E</span>: &lt;v&gt;' in html
    )


def test_a_failure_without_an_error_shows_its_message() -> None:
    """For example, a timeout has no traceback."""
    html = render(status="timeout")

    assert ">too long</pre>" in html
    assert "border-left:3px solid #d0453c" in html


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
        "```mermaid\nflowchart TD\n a@{ img: 'https://example.org/pixel.png' }\n```",
        r"$\style{background:url(https://example.org/pixel.png)}{x}$",
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


@pytest.mark.parametrize(
    "latex",
    [
        r"$\href{javascript:x}{y}$",
        r"$\href1{y}$",
        r"$\bbox[background:url(https://example.org)]{y}$",
        r"$\mmlToken{mi}[style='background:url(https://example.org)']{y}$",
        r"$\htmlStyle{background:url(https://example.org)}{y}$",
        r"$\includegraphics{https://example.org}$",
    ],
)
def test_latex_with_links_or_styles_is_shown_as_text(latex: str) -> None:
    assert ({"text/plain": "y"}, {}) == safe({"text/latex": latex, "text/plain": "y"})


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
