# Made by `python -m tests.unasync` from _async/browser.py: change that file, not this one.
"""A session's browser, for tests and notebooks; what is asked stands in ``wire.browser``."""

from __future__ import annotations

from typing import Any

from doublecheck.client._sync.connection import Connection
from doublecheck.client.arguments import checked_class
from doublecheck.values.sandbox import BrowserInfo
from doublecheck.wire import browser
from doublecheck.wire.browser import Format
from doublecheck.wire.data_plane import Endpoint


@checked_class
class Browser:
    """The browser of one session; every method raises RefusedError where it cannot be done."""

    def __init__(self, connection: Connection, endpoint: Endpoint) -> None:
        self._connection = connection
        self._endpoint = endpoint

    def info(self) -> BrowserInfo:
        """Return what the browser is, and the address of its DevTools protocol."""
        return self._connection.call(browser.info(self._endpoint))

    def screenshot(self, format: Format | None = None) -> bytes:  # noqa: A002 (the wire's)
        """Return a picture of the page in front."""
        return self._connection.call(browser.screenshot(self._endpoint, format))

    def act(self, action_type: str, **fields: Any) -> None:
        """Do one thing with mouse or keyboard: ``act("CLICK", x=10, y=20)``."""
        self._connection.call(browser.act(self._endpoint, action_type, fields))
