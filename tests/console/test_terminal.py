"""A terminal in a session, drawn as text."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

import httpx
import psutil
import pytest

from agentdouble import Emulator
from agentdouble.surfaces.session_plane_routes import INSTALL
from tests.console.conftest import _lacking
from tests.console.driving import ask, open_session

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.once


def shown(page: Page, double: Emulator) -> Locator:
    if importlib.util.find_spec("pyte") is None:
        _lacking("pyte", INSTALL)
    ask(double)
    open_session(page, double)
    page.get_by_role("tab", name="Terminal").click()
    screen = page.get_by_role("group", name="Screen of the terminal")
    screen.get_by_text("gem@agentdouble:~ $").wait_for()
    return screen


def shells(double: Emulator) -> list[psutil.Process]:
    """Return the interactive shells in the sessions of a double."""
    sessions = httpx.get(f"{double.url}/_emulator/sessions").json()["sessions"]
    started = [psutil.Process(pid) for one in sessions for pid in one["pids"]]
    below = [process for one in started for process in one.children(recursive=True)]
    return [one for one in below if "-i" in one.cmdline()]


def test_a_shell_answers_keys_and_ends_with_its_page(opened: Page, double: Emulator) -> None:
    """Colours, Ctrl-C and a paste of several lines; what it writes is text, and changes no title."""
    screen = shown(opened, double)
    title = opened.title()
    keys = opened.get_by_role("textbox", name="Terminal")

    opened.keyboard.type(
        r"printf '\e]0;hostile\a\e[31mr%s\e[0m <b>text</b>\n' ed; printf '\xc3'; sleep 600" + "\n"
    )
    red = screen.get_by_text("red", exact=True)
    red.wait_for()
    opened.keyboard.press("Control+c")
    keys.evaluate(
        """(field) => {
          const data = new DataTransfer();
          data.setData("text/plain", "echo one-$((1 + 1))\\necho pasted-$((2 + 2))");
          field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
        }"""
    )
    opened.keyboard.press("Enter")
    screen.get_by_text("pasted-4", exact=True).wait_for()
    colour = red.evaluate("(one) => one.style.color")
    opened.keyboard.press("Shift+Tab")
    left = keys.evaluate("(one) => document.activeElement !== one")
    (shell,) = shells(double)
    opened.get_by_role("link", name="Overview").click()

    gone, _ = psutil.wait_procs([shell], timeout=10)
    assert ("var(--terminal-1)", title, True) == (colour, title, left)
    assert [shell] == gone


def test_a_terminal_has_the_size_of_its_window(opened: Page, double: Emulator) -> None:
    """Programs that draw on the whole screen leave what was there before."""
    screen = shown(opened, double)

    opened.set_viewport_size({"width": 800, "height": 700})
    opened.keyboard.type("trap 'stty size' WINCH; stty size | tr ' ' x\n")
    screen.get_by_text("x", exact=False).last.wait_for()
    opened.set_viewport_size({"width": 1200, "height": 900})
    screen.locator("div").filter(has_text="x1").last.wait_for()
    opened.keyboard.type(
        r"printf '\e[?1049h\e[Hin front'; read; printf '\e[?1049l'; echo ba''ck" + "\n"
    )
    screen.get_by_text("in front", exact=True).wait_for()
    opened.keyboard.press("Enter")

    screen.get_by_text("back", exact=True).wait_for()
    screen.get_by_text("stty size |").wait_for()


def test_without_pyte_the_page_says_what_brings_it(
    browser: Browser, double: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the command that opens the session's kernel in another terminal."""
    monkeypatch.setitem(sys.modules, "pyte", None)
    ask(double)
    context = browser.new_context()
    page = context.new_page()
    assert double.console_url is not None
    page.goto(double.console_url)
    open_session(page, double)

    page.get_by_role("tab", name="Terminal").click()

    page.get_by_text(INSTALL).wait_for()
    page.get_by_text("agentdouble attach coder_ann_s0").wait_for()
    context.close()
