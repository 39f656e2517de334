"""Where the functions of an MCPApp run, and its hosting at one or several places."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from starlette.types import Receive, Scope, Send

from agentdouble.mcp_hosting import OPERATIONS, McpEndpoint
from agentdouble.openapi.operation import described
from agentdouble.server.application_loop import ApplicationLoop, containing_exit

if TYPE_CHECKING:
    from mcp.server import Server


THREADS = 64  # for an application's sync functions; further calls wait

# An application may be hosted at several places, but has one SDK server for its tools. So each
# request carries the runner for the functions.
_runs_on: ContextVar[Runner | None] = ContextVar("agentdouble_mcp_runner", default=None)


@described(OPERATIONS)
class HostedTools:
    """An MCPApp hosted at one place; it may be hosted at several."""

    def __init__(self, make_server: Callable[[], Server[Any]]) -> None:
        self._endpoint = McpEndpoint(make_server)
        self._runner: Runner | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._runner is None:
            raise RuntimeError(
                "An MCPApp answers only while its lifespan runs: use a server with the "
                "lifespan protocol, or enter 'async with app.lifespan()'."
            )
        token = _runs_on.set(self._runner)
        try:
            await self._endpoint(scope, receive, send)
        finally:
            _runs_on.reset(token)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests inside."""
        runner = Runner()
        await runner.loop.start()
        try:
            async with self._endpoint.running():
                self._runner = runner
                yield
        finally:
            self._runner = None
            await runner.loop.stop()

    def begin_shutdown(self) -> None:
        """End the listening streams, which would never end by themselves."""
        self._endpoint.begin_shutdown()


class Runner:
    """Runs functions: async ones on a separate event loop, sync ones in threads."""

    def __init__(self) -> None:
        self.loop = ApplicationLoop()
        self._threads = anyio.CapacityLimiter(THREADS)

    async def run(self, function: Callable[..., Any], arguments: inspect.BoundArguments) -> Any:
        """Call a function and return its result; cancel it if the caller is cancelled."""
        call = functools.partial(function, *arguments.args, **arguments.kwargs)
        if _is_async(function):
            return await self.loop.run(call())
        # A thread cannot be cancelled: after a cancelled call, the function keeps its thread until
        # it returns.
        value = await anyio.to_thread.run_sync(
            functools.partial(_contain_exit, call), abandon_on_cancel=True, limiter=self._threads
        )
        return await self.loop.run(value) if inspect.iscoroutine(value) else value


def current_runner(alone: Runner) -> Runner:
    """Return the runner of the place that serves the request, or ``alone`` outside of one."""
    return _runs_on.get() or alone


def _contain_exit(call: Callable[[], Any]) -> Any:
    with containing_exit():
        return call()


def _is_async(function: Callable[..., Any]) -> bool:
    """Return whether a call of a function, or of an object, returns a coroutine."""
    call = getattr(function, "__call__", None)  # noqa: B004 (an object's own)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
