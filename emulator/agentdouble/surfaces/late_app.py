"""An ASGI application that is imported when its first request comes."""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from agentdouble.threads import import_in_thread


class LateApp:
    """Imports modules in a thread and makes the application of them, when it is first asked.

    So a double starts without what nobody uses, and others are answered while one is imported.
    """

    def __init__(self, make: Callable[[], ASGIApp], *modules: str) -> None:
        self._make = make
        self._modules = modules
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            await import_in_thread(*self._modules)
            self._app = self._app or self._make()  # many may have waited
        await self._app(scope, receive, send)
