"""The browser of a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from doublecheck.client._async.connection import AsyncConnection
from doublecheck.values.executions import BrowserInfo
from doublecheck.wire import data_plane
from doublecheck.wire.calls import Call, Request
from doublecheck.wire.data_plane import Endpoint

Format = Literal["jpeg", "png"]


class AsyncBrowser:
    """The browser of one session. Every method raises RefusedError if the platform refuses."""

    def __init__(
        self, connection: AsyncConnection, endpoint: Callable[[], Awaitable[Endpoint]]
    ) -> None:
        self._connection = connection
        self._endpoint = endpoint

    async def info(self) -> BrowserInfo:
        """Return the browser's properties, with the address of its DevTools protocol."""
        request = Request("GET", (await self._endpoint()).at("/v1/browser/info"))
        return await self._connection.call(Call(request, data_plane.read_info))

    async def screenshot(self, format: Format | None = None) -> bytes:  # noqa: A002 (the wire's)
        """Return a screenshot of the active page."""
        chosen = "" if format is None else f"&format={format}"
        endpoint = await self._endpoint()
        request = Request("GET", endpoint.at("/v1/browser/screenshot") + chosen)
        return await self._connection.call(Call(request, data_plane.read_screenshot))
