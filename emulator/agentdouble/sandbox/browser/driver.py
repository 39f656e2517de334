"""Playwright's driver: one process for the whole double, started when it is first needed."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from agentdouble.errors import BrowserError, BrowserMissingError
from agentdouble.threads import import_in_thread

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

INSTALL = "pip install 'agentdouble[browser]'"
_CONNECT_PATIENCE_MS = 15_000


class Driver:
    """Connects to browsers through Playwright; belongs to one event loop."""

    def __init__(self) -> None:
        self._playwright: Playwright | None = None
        self._starting = asyncio.Lock()

    async def connect(self, url: str) -> Browser:
        """Connect to the browser whose protocol a WebSocket URL speaks.

        Raises BrowserMissingError without Playwright, BrowserError if it cannot.
        """
        playwright = await self._started()
        from playwright.async_api import Error

        try:
            return await playwright.chromium.connect_over_cdp(
                url, no_defaults=True, timeout=_CONNECT_PATIENCE_MS
            )
        except Error as error:
            without_token = str(error).replace(url, url.partition("?")[0])
            reason = without_token.partition("\n")[0]
            raise BrowserError(f"it cannot be driven: {reason}") from None

    async def close(self) -> None:
        """End the driver's process."""
        async with self._starting:
            if self._playwright is not None:
                with contextlib.suppress(Exception):  # a Ctrl-C has reached it, too
                    await self._playwright.stop()
            self._playwright = None

    async def _started(self) -> Playwright:
        async with self._starting:
            if self._playwright is None:
                self._playwright = await _start()
            return self._playwright


async def _start() -> Playwright:
    try:
        await import_in_thread("playwright.async_api")
        from playwright.async_api import async_playwright
    except ModuleNotFoundError as error:
        raise BrowserMissingError("Playwright", INSTALL) from error
    return await async_playwright().start()
