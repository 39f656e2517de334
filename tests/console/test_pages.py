"""The console's pages as a person uses them, in a real Chromium."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from agentdouble import Emulator

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATIENCE_MS = 15_000
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


@pytest.fixture
def opened(browser: Browser, double: Emulator) -> Iterator[Page]:
    """The console of an empty double; afterwards nothing is in the browser's console."""
    double.reset(keep=())
    with shown(browser, double) as page:
        yield page


@contextmanager
def shown(browser: Browser, double: Emulator, **options: Any) -> Iterator[Page]:
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda one: said.append(one.text) if one.type == "error" else None)
    page.on("pageerror", lambda one: said.append(str(one)))
    page.on("request", lambda one: asked.append(one.url))
    assert double.console_url is not None
    page.goto(double.console_url)
    page.get_by_text("Connected").wait_for()
    yield page
    context.close()
    origin = double.console_url.partition("/#")[0]
    assert ([], []) == (said, [one for one in asked if not one.startswith((origin, "data:"))])


def test_an_empty_double_says_how_to_begin(opened: Page, double: Emulator) -> None:
    """With the lines that send a first request; when it has come, it is there instead."""
    opened.get_by_text("Send a first request").wait_for()

    ask(double)

    opened.get_by_role("link", name="/invoke").wait_for()
    opened.get_by_role("link", name="coder_ann_s0").wait_for()
    assert "token" not in opened.url


def test_the_slider_says_who_ends(opened: Page, double: Emulator) -> None:
    """Before one travels; who was struck out has ended afterwards."""
    ask(double)
    ask(double, "s1")
    own(double, f"/sessions/{session_id(double)}/ttl", {"ttl_s": 60})
    opened.get_by_role("link", name="coder_ann_s1").wait_for()

    opened.get_by_label("Travel in time").fill("600")
    opened.get_by_text("+10:00: 1 session ends").wait_for()
    opened.get_by_role("button", name="Travel").click()

    opened.get_by_text("1 session ended.").wait_for(state="attached")
    opened.get_by_role("link", name="coder_ann_s0").wait_for(state="detached")
    assert 600 <= double.clock.offset.total_seconds() < 601


def test_a_request_by_the_keyboard_alone(opened: Page, double: Emulator) -> None:
    """Its page, its filter, the next one, what it rests on, and asking it again."""
    ask(double)
    opened.locator("body").press("3")
    opened.get_by_role("table", name="Requests").get_by_role("link", name="InvokeTool").wait_for()
    opened.keyboard.press("/")
    opened.keyboard.type("op:InvokeTool status:2xx")
    opened.get_by_text("1 request", exact=True).wait_for()
    opened.keyboard.press("Escape")
    opened.keyboard.press("j")

    opened.get_by_role("heading", name="InvokeTool").wait_for()
    opened.get_by_text("U-KERNEL-NAMES", exact=True).wait_for()
    opened.get_by_role("button", name="Ask again").press("Enter")
    opened.get_by_text("2 requests", exact=True).wait_for()
    address = opened.url
    opened.reload()

    opened.get_by_role("heading", name="InvokeTool").wait_for()
    assert (True, address) == ("/requests/" in address, opened.url)


def test_requests_are_held_and_cleared(opened: Page, double: Emulator) -> None:
    """What comes meanwhile is counted."""
    httpx.get(f"{double.url}/list-apps")
    opened.locator("body").press("3")
    opened.get_by_text("1 request", exact=True).wait_for()
    opened.get_by_role("button", name="Hold").click()
    httpx.get(f"{double.url}/list-apps")
    opened.get_by_text("1 request, 1 more since").wait_for()
    opened.get_by_role("button", name="Hold").click()
    opened.get_by_text("2 requests", exact=True).wait_for()

    opened.get_by_role("button", name="Clear").click()

    opened.get_by_text("No request has come yet.").wait_for()


def test_a_cell_runs_in_the_session_s_own_kernel(opened: Page, double: Emulator) -> None:
    """By the keyboard; what the agent has set is there, and what the agent runs is shown."""
    ask(double, code="answer = 42")
    open_session(opened, double)
    opened.get_by_label("Variables").get_by_text("answer").wait_for()
    code = opened.get_by_role("textbox", name="Code")

    code.fill("print(answer + 1)\n1 / 0")
    code.press("Shift+Enter")
    opened.get_by_role("log").get_by_text("43").wait_for()
    opened.get_by_role("log").get_by_text("ZeroDivisionError: division by zero").wait_for()
    ask(double, code="print('from the agent')")

    opened.get_by_role("log").get_by_text("from the agent").wait_for()


def test_a_session_is_paused_prolonged_and_ended(opened: Page, double: Emulator) -> None:
    """Its end asks first, and its page says the reason."""
    ask(double)
    open_session(opened, double)

    opened.get_by_role("button", name="Pause").click()
    opened.get_by_role("button", name="Resume").click()
    opened.get_by_role("button", name="Pause").wait_for()
    own(double, f"/sessions/{session_id(double)}/ttl", {"ttl_s": 60})
    opened.get_by_role("button", name="30 min anew").click()
    opened.get_by_text("29:5").wait_for()
    opened.get_by_role("button", name="End now").click()
    opened.get_by_role("dialog").get_by_role("button", name="End").click()

    opened.get_by_text("destroyed by caller").first.wait_for()


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


def test_reset_asks_first(opened: Page, double: Emulator) -> None:
    """And then nothing is left."""
    ask(double)
    opened.get_by_role("link", name="/invoke").wait_for()
    opened.get_by_role("button", name="Reset").click()
    opened.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert double.journal.entries()
    opened.get_by_role("button", name="Reset").click()

    opened.get_by_role("dialog").get_by_role("button", name="Reset").click()

    opened.get_by_text("Send a first request").wait_for()


def test_connect_hides_the_secret(opened: Page, double: Emulator) -> None:
    """Until it is asked for."""
    opened.get_by_role("button", name="Connect").click()
    dialog = opened.get_by_role("dialog")
    dialog.get_by_text("export ").wait_for()
    assert double.credentials.secret_key not in (dialog.text_content() or "")

    dialog.get_by_role("button", name="Show the secret").click()

    dialog.get_by_text(double.credentials.secret_key).wait_for()


def test_a_double_that_starts_again(browser: Browser) -> None:
    """The page says that it is away, keeps what it has shown, and names where the new token is."""
    with Emulator(console=True, pool_size=0) as first:
        port, console_port = (int(one.rpartition(":")[2]) for one in addresses(first))
        httpx.get(f"{first.url}/list-apps")
        page = browser.new_page()
        page.goto(first.console_url or "")
        page.get_by_role("link", name="/list-apps").wait_for()
    page.get_by_text("The double does not answer; looking for it").wait_for()
    page.get_by_role("link", name="/list-apps").wait_for()

    with Emulator(console=True, pool_size=0, port=port, console_port=console_port) as second:
        page.get_by_text("This address has no valid token").wait_for()
        page.get_by_role("link", name="/list-apps").wait_for()
        page.goto(second.console_url or "")  # only the fragment is another
        page.get_by_text("Connected").wait_for()
        page.get_by_text("Send a first request").wait_for()
        page.close()


def test_a_wrong_token_says_where_the_right_one_is(browser: Browser, double: Emulator) -> None:
    """It is a new one at each start of the double."""
    assert double.console_url is not None
    page = browser.new_page()

    page.goto(double.console_url.partition("=")[0] + "=wrong")

    page.get_by_text("This address has no valid token").wait_for()
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_keeps_anybody_out(browser: Browser, double: Emulator, scheme: Any) -> None:
    """Axe finds nothing by WCAG 2.1 A and AA and its best practices, in light and in dark."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs the extra test"
    )
    double.reset(keep=())
    found = []
    # axe evaluates text as a script, which the console's own policy forbids
    with shown(browser, double, color_scheme=scheme, bypass_csp=True) as page:
        found.append(axe.Axe().run(page))
        ask(double)
        id_ = session_id(double)
        entry = double.journal.entries()[-1].id
        page.get_by_role("link", name="coder_ann_s0").wait_for()
        for path in ("/", "/sessions", f"/sessions/{id_}", "/requests", f"/requests/{entry}"):
            page.evaluate(
                "(path) => { history.pushState(null, '', path);"
                " dispatchEvent(new PopStateEvent('popstate')); }",
                path,
            )
            page.locator("main h1, main h2").first.wait_for(state="attached")
            found.append(axe.Axe().run(page))

    assert [] == [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for result in found
        for one in result.response["violations"]
    ]


def addresses(double: Emulator) -> tuple[str, str]:
    return double.url, (double.console_url or "").partition("/#")[0]


def ask(double: Emulator, session: str = "s0", code: str = "print(6 * 7)") -> None:
    """Have the shipped coder run code in a session."""
    headers = {"user_id": "ann", "session_id": session}
    answer = httpx.post(f"{double.url}/invoke", json={"prompt": code}, headers=headers, timeout=60)
    answer.raise_for_status()


def own(double: Emulator, path: str, body: Any) -> None:
    httpx.post(f"{double.url}/_emulator{path}", json=body).raise_for_status()


def session_id(double: Emulator) -> str:
    sessions = httpx.get(f"{double.url}/_emulator/sessions").json()["sessions"]
    return str(sessions[0]["SessionId"])


def open_session(page: Page, double: Emulator) -> None:
    page.locator("body").press("2")
    page.get_by_role("link", name="coder_ann_s0").click()
    page.get_by_role("textbox", name="Code").wait_for()
