"""Pictures of the web console: a double that has been used a little, seen in Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from agentdouble import Emulator
from agentdouble.sandbox.browser import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Page

PAGES = ("overview", "session", "request")
_SIZE = {"width": 1120, "height": 640}
_PLOT = """\
import numpy as np, matplotlib.pyplot as plt

hours = np.linspace(0, 24, 200)
plt.figure(figsize=(5, 1.9))
plt.plot(hours, 20 + 4 * np.sin(hours / 4))
plt.show()
"""


def draw(folder: Path) -> None:
    """Write ``console-overview.png`` and the others of ``PAGES`` into a folder."""
    with Emulator(console=True) as double, _opened(double) as page:
        for session in ("mon", "tue", "wed"):
            _ask(double, session, "temperature = 21.5\nprint(f'{temperature} degrees')")
        _ask(double, "mon", "temperature / 0")
        double.clock.advance(minutes=11)
        _ask(double, "thu", "print('new today')")
        page.get_by_role("link", name="coder_ann_thu").wait_for()
        page.get_by_label("Travel in time").fill("1200")
        page.get_by_text("3 sessions end").wait_for()
        page.screenshot(path=folder / "console-overview.png")

        page.get_by_role("link", name="coder_ann_mon").click()
        page.get_by_role("textbox", name="Code").fill(_PLOT)
        page.get_by_role("textbox", name="Code").press("Shift+Enter")
        page.locator("img.out").wait_for()
        page.get_by_text("linspace").last.wait_for()
        page.screenshot(path=folder / "console-session.png")

        page.get_by_role("link", name="Requests").click()
        page.get_by_role("table", name="Requests", exact=True).get_by_role(
            "link", name="InvokeTool"
        ).first.click()
        page.get_by_role("heading", name="InvokeTool").wait_for()
        page.screenshot(path=folder / "console-request.png")


@contextmanager
def _opened(double: Emulator) -> Iterator[Page]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.find(None), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport=_SIZE, reduced_motion="reduce")
        page.goto(double.console_url or "")
        yield page
        browser.close()


def _ask(double: Emulator, session: str, code: str) -> None:
    headers = {"user_id": "ann", "session_id": session}
    httpx.post(f"{double.url}/invoke", json={"prompt": code}, headers=headers, timeout=60)
