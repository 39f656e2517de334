"""The hands of a double: one for each browser that is acted on, made when it is first needed."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from agentdouble.sandbox.browser.browser import Browser
from agentdouble.sandbox.browser.driver import Driver
from agentdouble.sandbox.browser.input_driver import InputDriver


class InputDrivers:
    """Finds the hand of a browser; belongs to one event loop."""

    def __init__(self) -> None:
        self._driver: Driver | None = None
        self._hands: WeakKeyDictionary[Browser, InputDriver] = WeakKeyDictionary()
        self._reaching: WeakKeyDictionary[Browser, asyncio.Lock] = WeakKeyDictionary()

    async def of(self, browser: Browser, url: str) -> InputDriver:
        """Return the hand on a browser, which answers at a WebSocket URL.

        Raises BrowserMissingError without Playwright, BrowserError if it cannot be reached.
        """
        self._driver = self._driver or Driver()
        async with self._reaching.setdefault(browser, asyncio.Lock()):
            hand = self._hands.get(browser)
            if hand is None or not hand.connected:
                hand = self._hands[browser] = InputDriver(await self._driver.connect(url))
            return hand

    async def close(self) -> None:
        """End the driver."""
        if self._driver is not None:
            await self._driver.close()
        self._driver = None
