"""What is said below a frame about what its HTML loads from elsewhere."""

from __future__ import annotations

import re
from html import escape, unescape

import pytest

from doublecheck.notebook.display.frames import external_hosts_note, framed

PLOTLY = '<script charset="utf-8" src="https://cdn.plot.ly/plotly-3.3.0.min.js"></script>'
BOKEH = '<script>const js_urls = ["https://cdn.bokeh.org/bokeh-3.8.0.min.js"];</script>'
ALTAIR = '<script>const paths = {"vega": "https://cdn.jsdelivr.net/npm/vega@6?noext"};</script>'


def read(html: str | None) -> str:
    return unescape(re.sub("<[^>]*>", "", html or ""))


@pytest.mark.parametrize(
    ("html", "host", "instead"),
    [
        (PLOTLY, "cdn.plot.ly", "to_html(include_plotlyjs=True)"),
        (BOKEH, "cdn.bokeh.org", "file_html(plot, INLINE)"),
        (ALTAIR, "cdn.jsdelivr.net", "to_html(inline=True)"),
        ("<script>import('https://esm.sh/d3')</script>", "esm.sh", "into the HTML itself"),
        ("<script>require(['//cdn.example.org/d3'])</script>", "cdn.example.org", "picture (PNG)"),
        ("<img src=http://127.0.0.1:8000/a.png>", "127.0.0.1:8000", "picture (PNG)"),
        ("<link rel=stylesheet href='//example.org/x'>", "example.org", "picture (PNG)"),
        ("<style>@import 'https://example.org/x'</style>", "example.org", "picture (PNG)"),
        ("<b style='background:url(https://example.org/x)'>", "example.org", "picture (PNG)"),
        (f'<iframe srcdoc="{escape(PLOTLY)}"></iframe>', "cdn.plot.ly", "include_plotlyjs"),
    ],
)
def test_what_html_loads_is_named_with_what_to_do_instead(
    html: str, host: str, instead: str
) -> None:
    """The line stands below the frame, in the page."""
    _, line = framed(html).rsplit("</iframe>", 1)

    assert f"This HTML loads from {host}: frames here have no network" in read(line)
    assert instead in read(line)


@pytest.mark.parametrize(
    "html",
    [
        "<script>draw()</script><svg xmlns='http://www.w3.org/2000/svg'></svg>",
        "<a onclick=go() href='https://example.org/library.js'>a link waits for a click</a>",
        "<script>const link = 'https://example.org/about';</script>",
        "<pre onclick=a()>&lt;script src='https://example.org/x.js'&gt;</pre>",
        "<img src='data:image/png;base64,AA=='><iframe srcdoc='<p>a</p>'></iframe>",
        f"<script>{'let x = 1;' * 60_000} load('https://cdn.example.org/x.js')</script>",
    ],
)
def test_what_loads_nothing_has_no_line(html: str) -> None:
    """Links, names and listings of code fetch nothing, nor does a library until it is asked to."""
    assert external_hosts_note(html) is None


def test_of_many_hosts_a_few_are_named() -> None:
    """It is one line."""
    line = read(
        external_hosts_note("".join(f"<img src='https://{name}.org/x'>" for name in "abcdef"))
    )

    assert line.startswith("This HTML loads from a.org, b.org, c.org, ...: ")


def test_hostile_html_is_read_in_linear_time() -> None:
    """What begins again and again and never ends; in quadratic time that would be minutes."""
    for begun in (
        "<img ",
        "<img src=",
        "url(",
        "'https://a.org/",
        " srcdoc=\"'",
        "<script>",
        "<!--",
    ):
        assert framed(begun * (200_000 // len(begun)))
    assert framed("<img src=" + " " * 200_000)
