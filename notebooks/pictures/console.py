"""Pictures of the web console: a double that has been used a little, seen in Chromium."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from PIL import Image

from agentdouble import Emulator
from agentdouble.core.invoke_tool import RunCode, ToolAddress, build
from agentdouble.sandbox.browser import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Page

_SIZE = {"width": 1120, "height": 640}
_PLOT = """\
import numpy as np, matplotlib.pyplot as plt

hours = np.linspace(0, 24, 200)
plt.figure(figsize=(5, 1.9))
plt.plot(hours, 20 + 4 * np.sin(hours / 4))
plt.show()
"""


def draw(folder: Path) -> None:
    """Write ``console-overview.png``, ``console-session.png`` and ``console-request.png`` there."""
    with Emulator(console=True) as double, _opened(double) as page:
        for session in ("mon", "tue", "wed"):
            _ask(double, session, "temperature = 21.5\nprint(f'{temperature} degrees')")
        _ask(double, "mon", "temperature / 0")
        double.clock.advance(minutes=11)
        _ask(double, "thu", "print('new today')")
        _run(double, "coder_ann_thu", "print(temperature)", language="python")
        page.get_by_role("link", name="coder_ann_thu").wait_for()
        page.get_by_text("running").wait_for(state="detached")
        page.get_by_text("busy").wait_for(state="detached")
        _save(page, folder / "console-overview.png")

        page.get_by_role("link", name="coder_ann_mon").click()
        page.get_by_role("textbox", name="Code").fill(_PLOT)
        page.get_by_role("textbox", name="Code").press("Shift+Enter")
        page.locator("img.out").wait_for()
        page.get_by_text("linspace").last.wait_for()
        _save(page, folder / "console-session.png")

        page.get_by_role("link", name="Requests", exact=True).click()
        page.get_by_role("table", name="Requests", exact=True).get_by_role(
            "link", name="InvokeTool"
        ).nth(1).click()  # the one with the language python
        page.get_by_role("heading", name="InvokeTool").wait_for()
        page.get_by_text("What if two-names?").click()
        page.get_by_text("Use two-names from now on").wait_for()
        _save(page, folder / "console-request.png")


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


def _save(page: Page, path: Path) -> None:
    """Save what is seen in few colours, so that a clone stays small."""
    Image.open(io.BytesIO(page.screenshot())).quantize(192).save(path, optimize=True)


def _ask(double: Emulator, session: str, code: str) -> None:
    headers = {"user_id": "ann", "session_id": session}
    httpx.post(f"{double.url}/invoke", json={"prompt": code}, headers=headers, timeout=60)


def _run(double: Emulator, session: str, code: str, language: str) -> None:
    address = ToolAddress(double.url, double.credentials)
    body = RunCode(double.tool_id, session, code, language).body()
    asked = build(body, address, dt.datetime.now(dt.timezone.utc))
    httpx.request(asked.method, asked.url, headers=asked.headers, content=asked.body, timeout=60)
