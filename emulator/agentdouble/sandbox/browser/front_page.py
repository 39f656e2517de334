"""Screenshot and size of a browser's front page, requested over the DevTools protocol.

https://chromedevtools.github.io/devtools-protocol/tot/Page/
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

from agentdouble.errors import PageError
from agentdouble.sandbox.browser.browser import Browser, BrowserConnection

TIMEOUT_S = 30.0
_LOOK_TIMEOUT_S = 1.0


async def screenshot(browser: Browser, kind: Literal["jpeg", "png"], quality: int | None) -> bytes:
    """Return a screenshot of the front page; raise PageError."""
    options = {"format": kind} if quality is None else {"format": kind, "quality": quality}
    async with _front_page(browser) as page:
        result = await page.call("Page.captureScreenshot", TIMEOUT_S, **options)
    return base64.b64decode(result["data"])


async def size(browser: Browser) -> dict[str, int] | None:
    """Return the size in pixels of the front page's viewport, or None without an answer."""
    try:
        async with _front_page(browser) as page:
            width, height = await page.evaluate("[innerWidth, innerHeight]")
    except PageError:
        return None
    return {"width": width, "height": height}


class _Client:
    """Calls to a browser, one at a time; ``session`` is the page's session once attached."""

    def __init__(self, connection: BrowserConnection) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self.session: str | None = None

    async def call(self, method: str, timeout_s: float = TIMEOUT_S, **params: Any) -> Any:
        """Return the result of a method; raise PageError if it fails or takes too long."""
        message: dict[str, Any] = {"id": next(self._numbers), "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        try:
            await self._connection.send(json.dumps(message))
            answer = await asyncio.wait_for(self._answer(message["id"]), timeout_s)
        except asyncio.TimeoutError:
            raise PageError(f"it did not answer within {timeout_s:g} s") from None
        except ConnectionError:
            raise PageError("the browser has just ended") from None
        if "error" in answer:
            raise PageError(str(answer["error"].get("message")))
        return answer["result"]

    async def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; raise PageError if the page is busy."""
        options = {"expression": expression, "returnByValue": True}
        answer = await self.call("Runtime.evaluate", _LOOK_TIMEOUT_S, **options)
        return answer["result"].get("value")

    async def _answer(self, number: int) -> dict[str, Any]:
        while (text := await self._connection.receive()) is not None:
            message: dict[str, Any] = json.loads(text)
            if message.get("id") == number:
                return message
        raise ConnectionError


@asynccontextmanager
async def _front_page(browser: Browser) -> AsyncIterator[_Client]:
    """Yield a client of the visible page that was opened last; open one if there is none."""
    connection = await browser.connect()
    try:
        client = _Client(connection)
        targets = (await client.call("Target.getTargets"))["targetInfos"]
        pages = [target["targetId"] for target in targets if target["type"] == "page"]
        if not pages:
            pages = [(await client.call("Target.createTarget", url="about:blank"))["targetId"]]
        for page in pages:  # the newest comes first
            client.session = None
            answer = await client.call("Target.attachToTarget", targetId=page, flatten=True)
            client.session = str(answer["sessionId"])
            if await _is_visible(client):
                break
        yield client
    finally:
        connection.close()


async def _is_visible(client: _Client) -> bool:
    with suppress(PageError):
        return bool(await client.evaluate("!document.hidden"))
    return True  # the page is busy, so it is most probably the one in front
