"""Screenshots of a double in use, in Chromium."""

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
    from playwright.sync_api import Browser, Page, ViewportSize

SIZE: ViewportSize = {"width": 1120, "height": 640}
_COLOURS = 192


@contextmanager
def launched() -> Iterator[Browser]:
    """Launch this machine's Chromium without a window."""
    from playwright.sync_api import sync_playwright  # only tests and pictures need it

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.find(None), args=["--no-sandbox"]
        )
        with browser:
            yield browser


def save(page: Page, path: Path) -> None:
    """Save what is seen in few colours, so that a clone stays small."""
    Image.open(io.BytesIO(page.screenshot())).quantize(_COLOURS).save(path, optimize=True)


def invoke(double: Emulator, session: str, payload: dict[str, str]) -> None:
    """Invoke the application as the user ann."""
    headers = {"user_id": "ann", "session_id": session}
    httpx.post(f"{double.url}/invoke", json=payload, headers=headers, timeout=60).raise_for_status()


def run_code(double: Emulator, session: str, code: str, language: str) -> None:
    """Run code in a session through InvokeTool."""
    address = ToolAddress(double.url, double.credentials)
    body = RunCode(double.tool_id, session, code, language).body()
    asked = build(body, address, dt.datetime.now(dt.timezone.utc))
    httpx.request(
        asked.method, asked.url, headers=asked.headers, content=asked.body, timeout=60
    ).raise_for_status()
