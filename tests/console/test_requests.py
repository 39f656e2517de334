"""The page of requests: the list, its filter, and one request beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentdouble import Emulator
from tests.console.driving import ask

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.once


def test_a_request_by_the_keyboard_alone(opened: Page, double: Emulator) -> None:
    """Its page, its filter, the next one, what it rests on, and asking it again."""
    ask(double)
    opened.locator("body").press("3")
    opened.get_by_role("table", name="Requests", exact=True).get_by_role(
        "link", name="InvokeTool"
    ).wait_for()
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
