"""What sessions, agents and tools write is shown, and does nothing."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

from agentdouble import Emulator
from tests.console.driving import ask, open_session

if TYPE_CHECKING:
    from playwright.sync_api import Browser


ELSEWHERE = "127.0.0.1:9"
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
SCRIPTED = """
<p id="ran" onclick="location = 'http://127.0.0.1:9/gone'"></p>
<script>
ran.textContent = "ran without origin: " + origin;
for (const act of [
  () => { parent.acted = 8; }, () => { top.location = "http://127.0.0.1:9/top"; },
  () => { open("http://127.0.0.1:9/window"); }, () => new WebSocket("ws://127.0.0.1:9/socket"),
  () => navigator.sendBeacon("http://127.0.0.1:9/beacon"), () => new RTCPeerConnection(),
  () => document.body.append(Object.assign(new Image(), { src: "http://127.0.0.1:9/image" })),
  () => { parent.postMessage("<img src=x onerror='acted = 9'>", "*"); },
  () => { import("http://127.0.0.1:9/module").catch(() => 0); },
  () => { new Worker(URL.createObjectURL(new Blob(["fetch('http://127.0.0.1:9/worker')"]))); },
]) { try { act(); } catch {} }
</script>
"""
SVG = '<svg xmlns="http://www.w3.org/2000/svg" onload="parent.acted = 6"><script>acted = 7</script></svg>'


def test_hostile_outputs_do_not_act(browser: Browser, double: Emulator) -> None:
    """HTML is in a frame without origin and network; its scripts run only when asked to."""
    double.reset(keep=())
    ask(double)
    context = browser.new_context()
    page = context.new_page()
    elsewhere = socket.create_server(("127.0.0.1", 0))
    elsewhere.setblocking(False)
    host = f"127.0.0.1:{elsewhere.getsockname()[1]}"
    hostile, scripted = (one.replace(ELSEWHERE, host) for one in (HOSTILE, SCRIPTED))
    assert double.console_url is not None
    page.goto(double.console_url)
    open_session(page, double)
    code = page.get_by_role("textbox", name="Code")

    code.fill(
        "from IPython.display import HTML, SVG, display\n"
        f"display(HTML({hostile!r}), SVG({SVG!r}), HTML({scripted!r}))\nprint('<b onclick=x>text</b>')"
    )
    code.press("Shift+Enter")

    page.get_by_text("<b onclick=x>text</b>").first.wait_for()
    frame, other = (page.locator("iframe").nth(place).content_frame for place in (0, 1))
    frame.get_by_text("harmless").wait_for()
    frame.locator("#link").click()
    page.get_by_role("button", name="Run its scripts").last.click()
    other.get_by_text("ran without origin: null").click()  # goes elsewhere
    other.get_by_text("ran without origin: null").wait_for(state="detached")
    acted = page.evaluate("() => [window.acted, document.querySelector('iframe').contentDocument]")
    context.close()
    assert [None, None] == acted
    with elsewhere:
        assert [] == sent_to(elsewhere)


def sent_to(listener: socket.socket) -> list[bytes]:
    """Return what was sent by those who have come; Chromium connects before it asks a policy."""
    sent = []
    with contextlib.suppress(BlockingIOError):  # nobody else has come
        while True:
            with listener.accept()[0] as connection, contextlib.suppress(BlockingIOError):
                connection.setblocking(False)
                sent.append(connection.recv(1000))
    return [one for one in sent if one]
