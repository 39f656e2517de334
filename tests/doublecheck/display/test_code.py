from __future__ import annotations

import base64

from doublecheck import CodeResult, Output
from doublecheck.display import code

PLAIN = (
    "margin:0;padding:.2em .6em;font-family:monospace;"
    "background:none;color:inherit;white-space:pre-wrap"
)


def render(*outputs: Output, status: str = "ok") -> str:
    return code.render(CodeResult(status == "ok", status, "too long", outputs, 1, "s-1", ""))


def test_printed_text_is_escaped() -> None:
    """What code prints is never taken for HTML."""
    expected = f'<div><pre style="{PLAIN}">&lt;script&gt; &amp;</pre></div>'

    assert expected == render(Output("stream", name="stdout", text="<script> &\n"))


def test_a_value_is_its_text_and_never_its_html() -> None:
    """HTML that code returns would run in the reader's page."""
    value = Output("execute_result", data={"text/plain": "a < b", "text/html": "<b onload=1>"})

    assert f'<div><pre style="{PLAIN}">a &lt; b</pre></div>' == render(value)


def test_an_image_is_inline() -> None:
    """It needs nothing from elsewhere, and replaces its text."""
    png = base64.b64encode(b"\x89PNG").decode()
    image = Output("display_data", data={"text/plain": "<Figure>", "image/png": png})

    assert f'<div><img src="data:image/png;base64,{png}" alt=""></div>' == render(image)


def test_a_traceback_keeps_its_colours() -> None:
    """ANSI colours become spans in tones that light and dark pages show."""
    error = Output("error", ename="E", evalue="v", traceback=("\x1b[31mE\x1b[0m: <v>",))

    shown = render(error, status="error")

    assert f'<pre style="{PLAIN};border-left:3px solid #d0453c">' in shown
    assert (
        '<span style="color: #d0453c; text-decoration-color: #d0453c">E</span>: &lt;v&gt;' in shown
    )


def test_a_failure_without_an_error_shows_its_message() -> None:
    """A timeout has no traceback; the platform's sentence is shown instead."""
    expected = f'<div><pre style="{PLAIN};border-left:3px solid #d0453c">too long</pre></div>'

    assert expected == render(status="timeout")


def test_a_result_shows_itself_in_a_notebook() -> None:
    """Both as text and as HTML, whatever the notebook passes."""
    result = CodeResult(True, "ok", "", (), 1, "s-1", "")

    bundle = result._repr_mimebundle_(include=None, exclude=None)

    assert {"text/plain": "<CodeResult ok [1]>", "text/html": "<div></div>"} == bundle
