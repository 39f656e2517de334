"""An ASGI application that is imported when its first request arrives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from agentdouble.threads import import_in_thread


class LateApp:
    """An application that imports its modules in a thread when it is first called.

    So a double starts without parts that no client uses, and answers other requests during an
    import.
    """

    def __init__(self, make: Callable[[], ASGIApp], *modules: str) -> None:
        self._make = make
        self._modules = modules
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = await self._made()
        await app(scope, receive, send)

    async def late_routes(self) -> Sequence[BaseRoute]:
        """Return the routes of the application, which is imported for them."""
        found: Sequence[BaseRoute] = getattr(await self._made(), "routes", ())
        return found

    async def _made(self) -> ASGIApp:
        if self._app is None:
            await import_in_thread(*self._modules)
            self._app = self._app or self._make()  # many requests may have waited
        return self._app
