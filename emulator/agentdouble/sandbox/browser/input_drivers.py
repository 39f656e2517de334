"""The input drivers of a double: one for each browser in use, all through one Playwright.

Playwright is one more client of a browser. It knows keys, buttons and focus. One driver process
serves the whole double. The option ``no_defaults`` leaves focus and media unchanged, so the driver
can find out which page is in front.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from agentdouble.errors import BrowserError, BrowserMissingError
from agentdouble.sandbox.browser.input_driver import InputDriver
from agentdouble.threads import import_in_thread

if TYPE_CHECKING:
    from playwright.async_api import Browser as PlaywrightBrowser
    from playwright.async_api import Playwright

    from agentdouble.sandbox.browser.browser import Browser


INSTALL = "pip install 'agentdouble[browser]'"
_CONNECT_TIMEOUT_MS = 15_000


class PlaywrightDriver:
    """Connects to browsers through Playwright; belongs to one event loop."""

    def __init__(self) -> None:
        self._playwright: Playwright | None = None
        self._starting = asyncio.Lock()

    async def connect(self, url: str) -> PlaywrightBrowser:
        """Connect to the browser whose protocol is served at a WebSocket URL.

        Raises BrowserMissingError without Playwright, BrowserError if it cannot connect.
        """
        playwright = await self._started()
        from playwright.async_api import Error

        try:
            return await playwright.chromium.connect_over_cdp(
                url, no_defaults=True, timeout=_CONNECT_TIMEOUT_MS
            )
        except Error as error:
            without_token = str(error).replace(url, url.partition("?")[0])
            reason = without_token.partition("\n")[0]
            raise BrowserError(f"it cannot be driven: {reason}") from None

    async def close(self) -> None:
        """End the driver's process."""
        async with self._starting:
            if self._playwright is not None:
                with contextlib.suppress(Exception):  # a Ctrl-C may have ended it, too
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
    if "TMPDIR" in os.environ:  # Playwright takes it as it is, also if there is no such directory
        os.environ["TMPDIR"] = tempfile.gettempdir()
    return await async_playwright().start()


class InputDrivers:
    """Finds the input driver of a browser; belongs to one event loop."""

    def __init__(self) -> None:
        self._playwright: PlaywrightDriver | None = None
        self._drivers: WeakKeyDictionary[Browser, InputDriver] = WeakKeyDictionary()
        self._connecting: WeakKeyDictionary[Browser, asyncio.Lock] = WeakKeyDictionary()

    async def of(self, browser: Browser, url: str) -> InputDriver:
        """Return the driver of a browser whose protocol is served at a WebSocket URL.

        Raises BrowserMissingError without Playwright, BrowserError if it cannot connect.
        """
        self._playwright = self._playwright or PlaywrightDriver()
        async with self._connecting.setdefault(browser, asyncio.Lock()):
            driver = self._drivers.get(browser)
            if driver is None or not driver.connected:
                driver = self._drivers[browser] = InputDriver(await self._playwright.connect(url))
            return driver

    async def close(self) -> None:
        """Close the Playwright driver."""
        if self._playwright is not None:
            await self._playwright.close()
        self._playwright = None
