"""The browser of a session, seen and used by its picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentdouble import Emulator
from tests.console.driving import ask, open_session

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.once

FORM = (
    "data:text/html,<title>Form</title><input id=a style='position:fixed;left:40px;top:40px'"
    " oninput='document.title = value'>"
)


def test_a_session_s_browser_is_driven_by_its_picture(opened: Page, double: Emulator) -> None:
    """It goes to an address, is clicked and typed at, and goes back."""
    ask(double)
    open_session(opened, double)
    opened.get_by_role("tab", name="Browser").click()
    page = opened.get_by_role("application", name="Page in the browser")
    page.wait_for(timeout=30_000)
    address = opened.get_by_role("textbox", name="Address")

    address.fill(FORM)
    address.press("Enter")
    picture = page.get_by_role("img", name="Form")
    picture.wait_for()
    scale = picture.evaluate("(one) => one.clientWidth / one.naturalWidth")
    picture.click(position={"x": 50 * scale, "y": 50 * scale})
    opened.keyboard.type("Gracey")
    opened.keyboard.press("Backspace")
    page.get_by_role("img", name="Grace", exact=True).wait_for()
    opened.get_by_role("button", name="Back").click()

    page.get_by_role("img", name="about:blank").wait_for()
    entries = [one.url for one in double.journal.entries()]
    assert [] == [one for one in entries if "screenshot" in one]
