"""The server's loop, for code of the application that runs on another.

The tools of an MCPApp may block, so they run on a loop of their own or in threads. The SDK's
sessions belong to the server's loop: what is asked of them is handed over to it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class ServerLoop:
    """The loop that creates the object; its coroutines can be awaited on any loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the server's loop; cancel it if the caller is cancelled."""
        if asyncio.get_running_loop() is self._loop:
            return await coroutine
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:  # the loop has been closed
            coroutine.close()
            raise RuntimeError("The server has stopped, and its client cannot be asked.") from None
        return await asyncio.wrap_future(future)

    def bind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that runs on the server's loop what the given one returns to await."""

        def call(*arguments: Any, **named: Any) -> Any:
            value = function(*arguments, **named)
            return self.run(value) if inspect.iscoroutine(value) else value

        return call


class OnServerLoop:
    """An object of the SDK whose coroutines can be awaited on any loop."""

    def __init__(self, loop: ServerLoop, wrapped: Any) -> None:
        self._loop = loop
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._wrapped, name)
        return self._loop.bind(value) if callable(value) else value


def bind_optional(
    loop: ServerLoop, function: Callable[[], Awaitable[None]] | None
) -> Callable[[], Awaitable[None]] | None:
    """Return the function bound to the server's loop, or None without one."""
    return None if function is None else loop.bind(function)
