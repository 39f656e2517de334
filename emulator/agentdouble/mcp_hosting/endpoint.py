"""One MCP server over streamable HTTP, as an ASGI application.

The server starts with its first request, so that a double imports no SDK before it is needed. One
task both starts and ends the server, because the SDK requires that.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from agentdouble.core import log_filters
from agentdouble.core.threads import import_in_thread, run_in_thread
from agentdouble.mcp_hosting.idle_sessions import IdleSessions
from agentdouble.openapi import Answer, Operation
from agentdouble.openapi.operation import EVENTS, described

if TYPE_CHECKING:
    from mcp.server import Server, ServerRequestContext
    from mcp.server.context import CallNext, HandlerResult
    from mcp.server.streamable_http import EventStore
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from agentdouble.mcp_hosting.open_requests import Calls
from agentdouble.mcp_hosting.refusals import INTERNAL_ERROR, failure

_log = logging.getLogger(__name__)

_MESSAGE = dict[str, Any]
OPERATIONS = {
    "POST": Operation(
        summary="Send a message of MCP: a request, a notification or an answer",
        answers=(Answer(_MESSAGE), Answer(str, media_type=EVENTS), Answer(None, 202)),
        body=_MESSAGE,
    ),
    "GET": Operation(
        summary="Listen to an MCP session",
        answers=(Answer(str, media_type=EVENTS),),
    ),
    "DELETE": Operation(
        summary="End an MCP session",
        answers=(Answer(None), Answer(None, 204)),
    ),
}

BODY_LIMIT = 4 * 1024 * 1024  # bytes
IDLE_TIMEOUT_S = 1800.0
MAX_SESSIONS = 1000  # of a server
STOP_WITHIN_S = 2.0


log_filters.tell_in_short("mcp.server.streamable_http", ClientDisconnect)


@described(OPERATIONS)
class McpEndpoint:
    """Serves a low-level ``mcp.server.Server``, both eras of the protocol, sessions over SSE.

    The first request calls ``make_server`` in a thread and imports the MCP SDK. If the server
    fails to start or breaks off, the current requests get a 503, and the next request starts it
    again. Requests are answered inside ``running()``, which any task may enter::

        endpoint = Endpoint(lambda: server)
        async with endpoint.running():
            ...  # endpoint(scope, receive, send)

    A body larger than ``body_limit`` (bytes) is refused with 413. A session ends when it has been
    idle for ``idle_timeout_s``, or longer than all others when there are ``max_sessions``. With an
    ``event_store``, clients can resume streams after ``retry_interval_ms``. The host and the guard
    decide who may call.
    """

    def __init__(
        self,
        make_server: Callable[[], Server[Any]],
        *,
        body_limit: int = BODY_LIMIT,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        max_sessions: int = MAX_SESSIONS,
        event_store: EventStore | None = None,
        retry_interval_ms: int | None = None,
    ) -> None:
        self._make_server = make_server
        self._body_limit = body_limit
        self._idle_timeout_s = idle_timeout_s
        self._max_sessions = max_sessions
        self._event_store = event_store
        self._retry_interval_ms = retry_interval_ms
        self._run: _Run | None = None
        self._context: contextvars.Context | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests inside the block."""
        self._context = contextvars.copy_context()
        try:
            yield
        finally:
            self._context = None
            if self._run is not None:
                await self._run.stop()
                self._run = None

    def begin_shutdown(self) -> None:
        """End the streams that only listen, because they would not end on their own."""
        if self._run is not None:
            self._run.begin_shutdown()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._context is None:
            raise RuntimeError(
                "An Endpoint answers requests inside 'async with endpoint.running()'."
            )
        content_type: str = Headers(scope=scope).get("content-type", "")
        # the SDK refuses this, too, without a body in its format
        if scope["method"] == "POST" and not content_type.lower().startswith("application/json"):
            refusal = failure(400, "A POST needs the header Content-Type: application/json.")
            await refusal(scope, receive, send)
            return
        if self._run is None or self._run.over:
            # The server's tasks must not run in the context of the first request.
            self._run = self._context.copy().run(_Run, self._make_manager)
        await self._run.answer(scope, receive, send)

    async def _make_manager(self) -> StreamableHTTPSessionManager:
        await import_in_thread("mcp.server.streamable_http_manager")
        from mcp.server import streamable_http_manager  # slow: the MCP SDK, 1 s

        server = await run_in_thread(self._make_server)  # a large definition takes a while
        if _contained not in server.middleware:
            server.middleware.insert(0, _contained)
        return streamable_http_manager.StreamableHTTPSessionManager(
            server,
            event_store=self._event_store,
            retry_interval=self._retry_interval_ms,
            session_idle_timeout=self._idle_timeout_s,
            max_request_body_size=self._body_limit,
            max_sessions=self._max_sessions,
        )


class _Run:
    """One run of a server, from its start to its end."""

    def __init__(
        self, make_manager: Callable[[], Coroutine[Any, Any, StreamableHTTPSessionManager]]
    ) -> None:
        self._make_manager = make_manager
        self._calls = Calls()
        self._stopping = asyncio.Event()
        self._started: asyncio.Future[ASGIApp] = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(self._run_server())

    @property
    def over(self) -> bool:
        """Whether the server has ended, or could not start."""
        return self._task.done()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = await asyncio.shield(self._started)
        await self._calls.answer(app, "", _broken_off, scope, receive, send)

    def begin_shutdown(self) -> None:
        self._calls.cancel_listening()

    async def stop(self) -> None:
        """End the server; cancel it if it does not end within STOP_WITHIN_S."""
        self._stopping.set()
        done, _ = await asyncio.wait({self._task}, timeout=STOP_WITHIN_S)
        if not done:
            _log.warning("An MCP server does not end by itself, and is cancelled.")
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=STOP_WITHIN_S)

    async def _run_server(self) -> None:
        try:
            manager = await self._make_manager()
            async with manager.run():
                app: ASGIApp = manager.asgi_app
                if manager.max_sessions is not None:
                    app = IdleSessions(app, manager.max_sessions)
                self._started.set_result(app)
                await self._stopping.wait()
        except Exception:
            _log.exception("An MCP server broke off.")
        finally:
            if not self._started.done():
                self._started.set_result(_not_started)
            self._calls.cancel()


async def _contained(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Call a handler; replace an exit, which would end the event loop, by an ordinary exception."""
    try:
        return await call_next(ctx)
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"A handler raised {type(error).__name__}.") from error


def _broken_off() -> Response:
    return failure(503, "The server broke off; its log says why. Try again.", INTERNAL_ERROR)


async def _not_started(scope: Scope, receive: Receive, send: Send) -> None:
    answer = failure(503, "The server did not start; its log says why.", INTERNAL_ERROR)
    await answer(scope, receive, send)
