"""A session's browser; its requests are built in ``wire.browser``."""

from __future__ import annotations

from doublecheck.client._async.connection import AsyncConnection
from doublecheck.values.sandbox import BrowserInfo
from doublecheck.wire import data_plane
from doublecheck.wire.data_plane import Endpoint, Format


class AsyncBrowser:
    """The browser of one session. Every method raises RefusedError if the platform refuses."""

    def __init__(self, connection: AsyncConnection, endpoint: Endpoint) -> None:
        self._connection = connection
        self._endpoint = endpoint

    async def info(self) -> BrowserInfo:
        """Return the browser's properties, with the address of its DevTools protocol."""
        return await self._connection.call(data_plane.info(self._endpoint))

    async def screenshot(self, format: Format | None = None) -> bytes:  # noqa: A002 (the wire's)
        """Return a screenshot of the active page."""
        return await self._connection.call(data_plane.screenshot(self._endpoint, format))
