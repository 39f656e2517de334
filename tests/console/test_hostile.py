"""Texts of sessions, agents, clients and definitions are shown but cannot act."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import httpx
import pytest

from agentdouble import Emulator, SimpleApp
from agentdouble.console.pages import PAGES
from tests.agentdouble.calling import act
from tests.console.driving import ask, go, open_session
from tests.console.hostile import HTML, Watch

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.once

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" onload="ACT" height="9000000"><script>ACT</script>'
    '<image href="OUT"/><foreignObject><iframe src="OUT"/></foreignObject></svg>'
)
BUNDLES = (
    {"image/svg+xml": SVG, "text/plain": "a hostile picture"},
    {"image/png": 'x" onerror="ACT', "text/plain": '" onerror="ACT'},
    {"image/gif": "javascript:ACT"},
    {"image/png": {"a": 1}},
    {"text/html": ["<p>in ", "parts</p>"]},
    {"text/html": 5},
    {"text/plain": "<img src=x onerror=ACT>"},
    {"text/plain": None},
    {"text/markdown": "[a](javascript:ACT)", "application/javascript": "ACT"},
    {"application/json": {"__proto__": {"polluted": 1}, "constructor": {"prototype": 1}}},
    {},
)
WRITTEN = (
    "<img src=x onerror=ACT>",
    "\x1b]8;;OUT\x1b\\a link\x1b]8;;\x1b\\",
    "\x1b]8;;javascript:ACT\x07a script\x1b]8;;\x07",
    "\x1b]0;another title\x07\x1b]52;c;SUQ=\x07\x1b[2J\x1b[?1049h\x1bP+q\x1b\\",
    "\x1b[38;5;999;31;99999mcoloured\x1b[0m \x1b]0;without an end",
    "\u202ebackwards",
)
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
CODE = """
import json
from IPython.display import HTML, display
for one in json.loads({bundles!r}):
    display(one, raw=True)
for place, one in enumerate(json.loads({html!r})):
    display(HTML(one), display_id=("__proto__", "constructor")[place] if place < 2 else None)
for one in json.loads({written!r}):
    print(one)
print("\\r" * 20_000 + "x" * 150_000)
raise Exception(json.loads({html!r})[0])
"""


@contextmanager
def watched(browser: Browser, double: Emulator) -> Iterator[tuple[Page, Watch]]:
    """Show the console and check that nothing acted and the page still works."""
    context = browser.new_context()
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(double.console_url or "")
    page.get_by_text("Connected").wait_for()
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        watch = Watch(page, elsewhere)
        yield page, watch
        go(page, "/requests")
        httpx.get(f"{double.url}/list-apps?still=there")
        rows = page.get_by_role("table", name="Requests", exact=True)
        rows.get_by_role("link", name="/list-apps").first.wait_for()
        noticed = watch.noticed()
        context.close()
    assert ([], []) == (noticed, errors)


def test_hostile_outputs_do_not_act(browser: Browser, double: Emulator) -> None:
    """HTML is framed without origin, network and scripts, and images run no scripts."""
    double.reset(keep=())
    ask(double)
    with watched(browser, double) as (page, watch):
        open_session(page, double)
        code = page.get_by_role("textbox", name="Code")
        texts = {
            "bundles": json.loads(watch.armed("bundle", json.dumps(BUNDLES))),
            "html": watch.html(),
            "written": [watch.armed("written", way) for way in WRITTEN],
        }
        code.fill(CODE.format(**{name: json.dumps(text) for name, text in texts.items()}))
        code.press("Shift+Enter")

        log = page.get_by_role("log")
        log.get_by_role("img", name="a hostile picture").wait_for()
        log.get_by_text("Exception: <script>").wait_for()
        page.frame_locator("iframe").last.get_by_text("a", exact=True).wait_for()
        assert len(HTML) + 2 == len(page.frames) - 1  # two of them come in bundles
        watch.click()
        assert 600 >= (page.locator("iframe").last.bounding_box() or {})["height"]
        code.fill("print(6 * 7)")
        code.press("Shift+Enter")

        log.get_by_text("42", exact=True).last.wait_for()
        assert "coder_ann_s0" in page.title() or "agentdouble" in page.title()


def test_scripts_run_on_request_are_isolated(browser: Browser, double: Emulator) -> None:
    """Their frame has no origin and no network."""
    double.reset(keep=())
    ask(double)
    page = browser.new_page()
    page.goto(double.console_url or "")
    open_session(page, double)
    code = page.get_by_role("textbox", name="Code")
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.setblocking(False)
        host = f"127.0.0.1:{elsewhere.getsockname()[1]}"
        code.fill(
            f"from IPython.display import HTML\nHTML({SCRIPTED.replace('127.0.0.1:9', host)!r})"
        )
        code.press("Shift+Enter")
        page.get_by_role("button", name="Run its scripts").click()
        ran = page.frame_locator("iframe").get_by_text("ran without origin: null")
        ran.click()  # goes elsewhere
        ran.wait_for(state="detached")

        assert page.evaluate("() => window.acted") is None
        assert [] == sent_to(elsewhere)
    page.close()


def test_hostile_requests_and_answers_do_not_act(browser: Browser) -> None:
    """This covers URLs, headers, bodies and impossible ports."""
    app = SimpleApp()

    @app.entrypoint
    async def echo(payload: dict[str, str], headers: object) -> str:
        return payload["prompt"]

    with (
        Emulator(app, console=True, pool_size=0) as double,
        watched(browser, double) as (page, watch),
    ):
        texts = [*watch.html(), *(watch.armed("text", way) for way in WRITTEN)]
        connection = http.client.HTTPConnection(urlsplit(double.url).netloc)
        for place, text in enumerate(texts):
            body = json.dumps({"prompt": text, "__proto__": {"polluted": 1}, "a": json.dumps(text)})
            plain = "".join(char for char in text if char.isprintable() and char.isascii())
            headers = {"X-Hostile": plain, "User-Agent": plain, "session_id": f"s{place}"}
            path = f"/invoke?q={plain.replace(' ', '+')}&Action={quote(text)}"
            connection.request("POST", path, body, headers)
            assert text in json.loads(connection.getresponse().read())
            connection.request("GET", f"/{quote(text)}")
            connection.getresponse().read()
        deep = "[" * 20_000 + "]" * 20_000
        for host in ("127.0.0.1:99999", "[::1]:", "localhost:0"):
            connection.request("POST", "/%0A//a:99999/%E0", deep, {"Host": host})
            connection.getresponse().read()
        connection.close()
        for entry in double.journal.entries()[-12:]:
            go(page, f"/requests/{entry.id}")
            page.get_by_text(f"#{entry.id}", exact=True).wait_for()
            page.evaluate(
                "() => document.querySelectorAll('details').forEach((one) => one.open = true)"
            )
        page.get_by_role("searchbox").fill("constructor:a __proto__:b valueOf:")
        page.get_by_text("No requests match the filter.").wait_for()
        page.get_by_role("searchbox").fill("")
        page.keyboard.press("Escape")


def test_hostile_names_do_not_act(browser: Browser, double: Emulator) -> None:
    """Names are arbitrary, and anyone can link to any page URL."""
    double.reset(keep=())
    with watched(browser, double) as (page, watch):
        for name in ("__proto__", "constructor", "toString"):
            act(double, "CreateSession", ToolId=double.tool_id, UserSessionId=name)
        for text in watch.html():
            act(double, "CreateTool", Name=text[:128], ToolType="CodeEnv", Description=text)
        for path in PAGES:
            for rest in ("", "/__proto__", "/%E0%A4%A", "/constructor", "/%3Cscript%3E"):
                go(page, f"/{path}{rest}")
                page.locator("main h1, main h2").first.wait_for(state="attached")
        go(page, "/sessions")
        page.get_by_role("link", name="__proto__").wait_for()


def sent_to(listener: socket.socket) -> list[bytes]:
    """Return the data that reached a listener; Chromium connects before it checks a policy."""
    sent = []
    with contextlib.suppress(BlockingIOError):  # nobody else has come
        while True:
            with listener.accept()[0] as connection, contextlib.suppress(BlockingIOError):
                connection.setblocking(False)
                sent.append(connection.recv(1000))
    return [url for url in sent if url]
