"""``/v1/browser/...``: a session's browser: facts, DevTools protocol, screenshots (SBX-11)."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from agentdouble.core import ledger
from agentdouble.errors import PageError, SandboxError
from agentdouble.openapi import Answer, operation
from agentdouble.sandbox.browser import WINDOW, front_page
from agentdouble.sandbox.data_plane.session_token import (
    INSTANCE,
    PREFIX,
    TOKEN,
    close_gone,
    processes_of,
    sandbox_error,
)
from agentdouble.sandbox.workbench.wire import Envelope, envelope, until_one_ends, wrong_fields

if TYPE_CHECKING:
    from agentdouble.sandbox.browser.browser import BrowserConnection

_CDP = f"{PREFIX}/browser/cdp"


class _Screenshot(BaseModel):
    model_config = ConfigDict(frozen=True)

    format: Literal["jpeg", "png"] | None = None
    quality: int | None = Field(None, ge=0, le=100)


_PICTURES = (
    Answer(str, media_type="image/jpeg"),
    Answer(str, media_type="image/png"),
    Answer(Envelope),
)


class BrowserRoutes:
    """The routes of one double's browsers."""

    def routes(self) -> list[BaseRoute]:
        """Return the routes."""
        base = f"{PREFIX}/browser"
        return [
            Route(f"{base}/info", self.info),
            Route(f"{base}/screenshot", self.screenshot),
            WebSocketRoute(_CDP, self.cdp),
        ]

    @operation(Envelope)
    async def info(self, request: Request) -> Response:
        """Return facts about the browser and the URL of its DevTools protocol."""
        browser = await processes_of(request).browser()
        size = await front_page.size(browser)
        width, height = WINDOW
        viewport = size or {"width": width, "height": height}
        scheme = "wss" if request.url.scheme == "https" else "ws"
        session = processes_of(request).session
        query = urlencode({INSTANCE: session.id, TOKEN: session.token})
        return envelope(
            {
                "user_agent": browser.user_agent,
                "cdp_url": f"{scheme}://{request.url.netloc}{_CDP}?{query}",
                "vnc_url": "",  # a headless browser has no screen to look at
                "cdp_ui_url": None,
                "viewport": viewport,
                "page_viewport": size,
            }
        )

    @operation(_PICTURES, query=_Screenshot)
    async def screenshot(self, request: Request) -> Response:
        """Return a screenshot of the front page (U-BROWSER-FORMAT)."""
        try:
            options = _Screenshot.model_validate(dict(request.query_params))
        except ValidationError as error:
            return wrong_fields(error, "query")
        unspecified: Literal["jpeg", "png"] = (
            "png" if ledger.choose("U-BROWSER-FORMAT") == "png" else "jpeg"
        )
        kind = options.format or unspecified
        try:
            browser = await processes_of(request).browser()
            quality = options.quality if kind == "jpeg" else None
            picture = await front_page.screenshot(browser, kind, quality)
        except PageError as error:
            return envelope(None, str(error), success=False)
        return Response(picture, media_type=f"image/{kind}")

    async def cdp(self, websocket: WebSocket) -> None:
        """Connect a client to the browser with the Chrome DevTools Protocol."""
        processes = processes_of(websocket)
        try:
            connection = await (await processes.browser()).connect()
        except SandboxError as error:
            await websocket.send_denial_response(await sandbox_error(websocket, error))
            return
        await websocket.accept()
        try:
            with contextlib.suppress(ConnectionError, RuntimeError, WebSocketDisconnect):
                await until_one_ends(
                    _to_browser(websocket, connection), _to_client(websocket, connection)
                )
        finally:
            connection.close()
        if websocket.client_state.name == "CONNECTED":
            await close_gone(websocket, processes.session.end_reason or "the browser has ended")


async def _to_browser(websocket: WebSocket, connection: BrowserConnection) -> None:
    while True:
        try:
            message = await websocket.receive_text()
        except (WebSocketDisconnect, KeyError):  # it has disconnected, or has sent bytes
            return
        await connection.send(message)


async def _to_client(websocket: WebSocket, connection: BrowserConnection) -> None:
    while (message := await connection.receive()) is not None:
        await websocket.send_text(message)
