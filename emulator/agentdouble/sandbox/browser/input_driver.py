"""An input driver: mouse, keyboard and screenshots of one browser (SBX-11)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from agentdouble.errors import PageError

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Dialog, Keyboard, Mouse, Page

    from agentdouble.sandbox.browser.actions import Action

T = TypeVar("T")

TIMEOUT_S = 30.0
_LOOK_TIMEOUT_S = 1.0


@dataclass(frozen=True)
class Size:
    """The size of a page's visible part, in pixels."""

    width: int
    height: int


class InputDriver:
    """Acts on the page in front of one browser; runs one action at a time, in order of arrival."""

    def __init__(self, browser: Browser) -> None:
        self.x = 0.0
        self.y = 0.0
        self.mouse: Mouse
        self.keyboard: Keyboard
        self._browser = browser
        self._turn = asyncio.Lock()
        self._dialogs: dict[Page, Dialog] = {}
        self._page: Page
        for context in browser.contexts:
            self._watch(context)
        browser.on("context", self._watch)

    @property
    def connected(self) -> bool:
        """Whether the browser is still connected."""
        return self._browser.is_connected()

    async def perform(self, action: Action) -> None:
        """Perform an action on the page in front; raise PageError if that fails."""
        await self._on_page(lambda: action.perform(self), TIMEOUT_S + action.lasts_s)

    async def screenshot(self, kind: Literal["jpeg", "png"], quality: int | None) -> bytes:
        """Return a picture of the page in front; raise PageError."""

        def take() -> Awaitable[bytes]:
            return self._page.screenshot(
                type=kind, quality=quality, animations="allow", caret="initial"
            )

        return await self._on_page(take, TIMEOUT_S)

    async def size(self) -> Size | None:
        """Return the size of the page in front, or None if the page does not answer."""
        try:
            width, height = await self._on_page(
                lambda: self._page.evaluate("[innerWidth, innerHeight]"), _LOOK_TIMEOUT_S
            )
        except PageError:
            return None
        return Size(width, height)

    async def move(self, x: float, y: float, *, steps: int = 1) -> None:
        """Move the mouse to a point."""
        await self.mouse.move(x, y, steps=steps)
        self.x, self.y = x, y

    async def press(self, key: str) -> None:
        """Press a key; Enter and Escape answer an open dialog."""
        dialog = self._dialogs.pop(self._page, None) if key in ("Enter", "Escape") else None
        if dialog is None or not await _answered(dialog, accept=key == "Enter"):
            await self.keyboard.press(key)

    def _watch(self, context: BrowserContext) -> None:
        # Without a listener, Playwright would dismiss dialogs that another client waits for.
        context.on("dialog", self._on_dialog)

    def _on_dialog(self, dialog: Dialog) -> None:
        if dialog.page is not None:
            self._dialogs[dialog.page] = dialog

    async def _on_page(self, do: Callable[[], Awaitable[T]], within_s: float) -> T:
        """Call ``do`` in turn on the page in front; retry once if the page closes."""
        async with self._turn:
            for last_try in (False, True):
                await self._find_page()
                try:
                    return await _with_timeout(do(), within_s)
                except PageError:
                    if last_try or not self._page.is_closed():
                        raise
        raise AssertionError("unreachable")

    async def _find_page(self) -> None:
        """Find the page in front: the visible page that was opened last."""
        contexts = self._browser.contexts
        if not contexts:
            raise PageError("the browser has just ended")
        pages = [page for one in contexts for page in one.pages if not page.is_closed()]
        if not pages:
            pages = [await _with_timeout(contexts[0].new_page(), TIMEOUT_S)]
        seen = await asyncio.gather(*map(self._is_seen, pages))
        in_sight = [page for page, is_seen in zip(pages, seen, strict=True) if is_seen]
        self._page = (in_sight or pages)[-1]
        self.mouse, self.keyboard = self._page.mouse, self._page.keyboard

    async def _is_seen(self, page: Page) -> bool:
        if page in self._dialogs:
            return True
        try:
            return bool(await _with_timeout(page.evaluate("!document.hidden"), _LOOK_TIMEOUT_S))
        except PageError:  # the page is busy, so it is most probably the one in front
            return not page.is_closed()


async def _answered(dialog: Dialog, *, accept: bool) -> bool:
    """Answer a dialog; return False if another client has already answered it."""
    from playwright.async_api import Error

    try:
        await (dialog.accept() if accept else dialog.dismiss())
    except Error:
        return False
    return True


async def _with_timeout(asked: Awaitable[T], within_s: float) -> T:
    """Wait for a call of a page; raise PageError if it fails or takes too long."""
    from playwright.async_api import Error

    try:
        return await asyncio.wait_for(asked, within_s)
    except asyncio.TimeoutError:
        raise PageError(f"the page did not do it within {within_s:g} s") from None
    except Error as error:
        raise PageError(str(error).partition("\n")[0]) from None
