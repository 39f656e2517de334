"""Display of code results."""

from __future__ import annotations

import base64

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
