"""How the result of running code looks."""

from __future__ import annotations

import base64

from doublecheck import CodeResult, Output


def render(*outputs: Output, status: str = "ok") -> str:
    result = CodeResult(status == "ok", status, "too long", outputs, 1, "s-1", "")
    return str(result._repr_mimebundle_(include=None, exclude=None)["text/html"])


def test_printed_text_is_escaped() -> None:
    """What code prints is never taken for HTML."""
    assert ">&lt;script&gt; &amp;</pre>" in render(
        Output("stream", name="stdout", text="<script> &\n")
    )


def test_a_value_is_its_text_and_never_its_html() -> None:
    """HTML that code returns would run in the reader's page."""
    value = Output("execute_result", data={"text/plain": "a < b", "text/html": "<b onload=1>"})

    assert ">a &lt; b</pre>" in render(value)
    assert "onload" not in render(value)


def test_an_image_is_inline() -> None:
    """It needs nothing from elsewhere, and replaces its text."""
    png = base64.b64encode(b"\x89PNG").decode()
    image = Output("display_data", data={"text/plain": "<Figure>", "image/png": png})

    assert f'<img src="data:image/png;base64,{png}"' in render(image)
    assert "Figure" not in render(image)


def test_a_traceback_keeps_its_colours() -> None:
    """ANSI colours become spans in tones that light and dark pages show."""
    error = Output("error", ename="E", evalue="v", traceback=("\x1b[31mE\x1b[0m: <v>",))

    shown = render(error, status="error")

    assert "border-left:3px solid #d0453c" in shown
    assert (
        '<span style="color: #d0453c; text-decoration-color: #d0453c">E</span>: &lt;v&gt;' in shown
    )


def test_a_failure_without_an_error_shows_its_message() -> None:
    """A timeout has no traceback; the platform's sentence is shown instead."""
    shown = render(status="timeout")

    assert ">too long</pre>" in shown
    assert "border-left:3px solid #d0453c" in shown
