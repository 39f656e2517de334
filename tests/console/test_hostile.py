"""What sessions, agents and tools write is shown, and does nothing."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from agentdouble import Emulator
from tests.console.driving import ask, open_session

if TYPE_CHECKING:
    from playwright.sync_api import Browser


ELSEWHERE = "http://127.0.0.1:9"
HOSTILE = """
<img src=x onerror="parent.acted = 1"><script>parent.acted = 2; fetch("http://127.0.0.1:9/out")</script>
<svg onload="parent.acted = 3"></svg><iframe src="http://127.0.0.1:9/frame"></iframe>
<meta http-equiv="refresh" content="0;url=http://127.0.0.1:9/meta">
<form action="http://127.0.0.1:9/form"><input autofocus onfocus="parent.acted = 4"></form>
<link rel="stylesheet" href="http://127.0.0.1:9/css"><style>@import "http://127.0.0.1:9/import";
body { background: url(http://127.0.0.1:9/background) }</style><base href="http://127.0.0.1:9/">
<a href="javascript:parent.acted = 5" id="link">link</a><object data="http://127.0.0.1:9/object"></object>
<p>harmless</p>
"""
SVG = '<svg xmlns="http://www.w3.org/2000/svg" onload="parent.acted = 6"><script>acted = 7</script></svg>'


def test_hostile_outputs_do_not_act(browser: Browser, double: Emulator) -> None:
    """HTML is in a frame without origin, network and scripts; a picture runs none."""
    double.reset(keep=())
    ask(double)
    context = browser.new_context()
    page = context.new_page()
    elsewhere = socket.create_server(("127.0.0.1", 0))
    elsewhere.setblocking(False)
    hostile = HOSTILE.replace(ELSEWHERE, f"http://127.0.0.1:{elsewhere.getsockname()[1]}")
    assert double.console_url is not None
    page.goto(double.console_url)
    open_session(page, double)
    code = page.get_by_role("textbox", name="Code")

    code.fill(
        "from IPython.display import HTML, SVG, display\n"
        f"display(HTML({hostile!r}), SVG({SVG!r}))\nprint('<b onclick=x>text</b>')"
    )
    code.press("Shift+Enter")

    page.get_by_text("<b onclick=x>text</b>").first.wait_for()
    frame = page.frame_locator("iframe")
    frame.get_by_text("harmless").wait_for()
    frame.locator("#link").click()
    acted = page.evaluate("() => [window.acted, document.querySelector('iframe').contentDocument]")
    context.close()
    assert [None, None] == acted
    with elsewhere, pytest.raises(BlockingIOError):  # nobody has come
        elsewhere.accept()
