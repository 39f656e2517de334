"""A comparison in a notebook: short text and HTML, in which all that was said is escaped."""

from __future__ import annotations

import re

import pytest

from doublecheck.comparing.differences import Difference
from doublecheck.twins import html_page
from doublecheck.twins.comparison import Compared, Comparison, Part
from doublecheck.wire.calls import Request
from doublecheck.wire.exchanges import Exchange

HOSTILE = "<script>alert('x')</script>"
SAID = Exchange(Request("POST", "http://127.0.0.1:1/invoke", {}, b"{}"), 200, {}, HOSTILE.encode())
DIVERGES = Difference("value", "$.text", 1, HOSTILE)
ASSUMED = Difference("value", "status", 404, 400, because="U-SESSION-UNKNOWN")
CALL = Compared("POST /invoke", SAID, SAID, (DIVERGES, ASSUMED))
SAME = Part("probes", (Compared("GET /ping", SAID, SAID),))
COMPARISON = Comparison(
    "http://127.0.0.1:1",
    "https://agent.example.com",
    (SAME, Part("invocations", (CALL,)), Part("A2A", skipped="no a2a")),
)


def test_each_is_one_line_of_text() -> None:
    """It says what it comes to."""
    assert "<Comparison diverges: 2 calls, 1 diverges, 1 same>" == repr(COMPARISON)
    assert ["<Part probes: same, 1 call>", "<Part A2A: not carried out: no a2a>"] == [
        repr(COMPARISON.parts[0]),
        repr(COMPARISON.parts[2]),
    ]
    assert "<Compared POST /invoke: diverges, 2 differences>" == repr(CALL)
    assert "<Difference assumed: status: double 404, live 400 (U-SESSION-UNKNOWN)>" == repr(ASSUMED)


def test_what_diverges_lies_open_and_what_was_said_is_text() -> None:
    """The rest is folded, and an unknown that explains a difference is named."""
    html = COMPARISON._repr_mimebundle_()["text/html"]

    opened = re.findall(r"<details open[^>]*><summary[^>]*><(?:b|code)[^>]*>([^<]+)<", html)
    assert ["invocations", "POST /invoke"] == opened
    assert "U-SESSION-UNKNOWN" in html
    assert "A2A: not carried out: no a2a" in html
    assert "<script" not in html


@pytest.mark.parametrize(("count", "opened"), [(3, ["invocations", *["GET /ping"] * 3]), (4, [])])
def test_a_few_assumed_differences_lie_open(count: int, opened: list[str]) -> None:
    """They are what there is to see; of many, each is found in its part."""
    call = Compared("GET /ping", SAID, SAID, (ASSUMED,))
    parts = (SAME, Part("invocations", (call,) * count))
    html = Comparison("http://a", "http://b", parts)._repr_mimebundle_()["text/html"]

    assert opened == re.findall(r"<details open[^>]*><summary[^>]*><(?:b|code)[^>]*>([^<]+)<", html)


def test_parts_calls_and_differences_show_themselves() -> None:
    """Each as it looks within the whole."""
    for one in (COMPARISON.parts[1], CALL, DIVERGES):
        html = one._repr_mimebundle_()["text/html"]

        assert "$.text" in html
        assert "<script" not in html


def test_a_page_and_a_notebook_tell_the_same() -> None:
    """In one order, though each has a look of its own; the page asks nobody for anything."""
    written = html_page.page(COMPARISON)
    told = COMPARISON.parts[1].calls[0]._repr_mimebundle_()["text/html"]

    assert _texts(told) == _texts(written)[-len(_texts(told)) - 2 : -2]
    assert ["A2A", "not carried out: no a2a"] == _texts(written)[-2:]
    assert "default-src &#x27;none&#x27;" in written


def _texts(html: str) -> list[str]:
    return [text.strip() for text in re.findall(r">([^<]+)<", html) if text.strip()]
