"""How the result of running code looks."""

from __future__ import annotations

import base64

from doublecheck.results import CodeResult, Output


def render(*outputs: Output, status: str = "ok") -> str:
    result = CodeResult(status == "ok", status, "too long", outputs, 1, "s-1", "")
    return str(result._repr_mimebundle_(include=None, exclude=None)["text/html"])


def test_printed_text_is_escaped() -> None:
    """What code prints is never taken for HTML."""
    assert ">&lt;script&gt; &amp;</pre>" in render(
        Output("stream", name="stdout", text="<script> &\n")
    )


def test_a_value_shows_the_richest_of_its_shapes() -> None:
    """HTML in a frame, Markdown as text, a formula with its dollars, JSON as a tree."""
    table = {"text/plain": "0 a", "text/html": "<table><tr><td>a</td></tr></table>"}
    formula = {"text/plain": "x**2", "text/latex": "$$x^2$$"}
    tree = {"text/plain": "<JSON>", "application/json": {"a": "b" * 100}}

    assert "<iframe" in render(Output("execute_result", data=table))
    assert "<div>$$x^2$$</div>" in render(Output("display_data", data=formula))
    assert "<details open" in render(Output("display_data", data=tree))


def test_a_value_that_is_all_there_is_passes_in_its_own_shapes() -> None:
    """A notebook that draws charts draws it, and a formula is one."""
    data = {"text/plain": "<Chart>", "application/vnd.vegalite.v5+json": {"mark": "bar"}}
    chart = Output("execute_result", data=data)
    alone = CodeResult(True, "ok", "", (chart,), 1, "s-1", "")
    two_charts = CodeResult(True, "ok", "", (chart, chart), 1, "s-1", "")

    assert {"text/plain", "text/html", "application/vnd.vegalite.v5+json"} == set(
        alone._repr_mimebundle_()
    )
    assert {"text/plain", "text/html"} == set(two_charts._repr_mimebundle_())
    assert repr(alone) == alone._repr_mimebundle_()["text/plain"]


def test_html_of_a_value_does_not_reach_the_page() -> None:
    """What it would do there, it does in a frame of its own."""
    value = Output("execute_result", data={"text/plain": "a < b", "text/html": "<b onload=1>"})

    assert "<b " not in render(value)
    assert 'sandbox="allow-scripts"' in render(value)


def test_what_was_printed_is_shown_as_far_as_it_can_be_read() -> None:
    """The result has all of it."""
    html = render(*[Output("stream", name="stdout", text="x" * 10_000)] * 3)

    assert "… 10,000 more characters; result.stdout has all of it" in html


def test_an_image_is_inline() -> None:
    """It needs nothing from elsewhere, and replaces its text."""
    png = base64.b64encode(b"\x89PNG").decode()
    image = Output("display_data", data={"text/plain": "<Figure>", "image/png": png})

    assert f'<img src="data:image/png;base64,{png}"' in render(image)
    assert "Figure" not in render(image)


def test_a_traceback_keeps_its_colours() -> None:
    """ANSI colours become spans in tones that light and dark pages show."""
    error = Output("error", ename="E", evalue="v", traceback=("\x1b[31mE\x1b[0m: <v>",))

    html = render(error, status="error")

    assert "border-left:3px solid #d0453c" in html
    assert (
        '<span style="color: #d0453c; text-decoration-color: #d0453c">E</span>: &lt;v&gt;' in html
    )


def test_a_failure_without_an_error_shows_its_message() -> None:
    """A timeout has no traceback; the platform's sentence is shown instead."""
    html = render(status="timeout")

    assert ">too long</pre>" in html
    assert "border-left:3px solid #d0453c" in html
