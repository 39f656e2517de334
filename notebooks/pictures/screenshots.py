"""Screenshots of a double in use, in Chromium."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from PIL import Image

from agentdouble import Emulator

if TYPE_CHECKING:
    from playwright.sync_api import Page, ViewportSize

SIZE: ViewportSize = {"width": 1120, "height": 640}
_COLOURS = 192


def save(page: Page, path: Path) -> None:
    """Save what is seen in few colours, so that a clone stays small."""
    Image.open(io.BytesIO(page.screenshot())).quantize(_COLOURS).save(path, optimize=True)


def invoke(double: Emulator, session: str, payload: dict[str, str]) -> None:
    """Invoke the application as the user ann."""
    headers = {"user_id": "ann", "session_id": session}
    httpx.post(f"{double.url}/invoke", json=payload, headers=headers, timeout=60).raise_for_status()
