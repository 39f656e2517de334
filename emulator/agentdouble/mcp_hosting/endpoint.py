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
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble import mistakes, strict_json
from agentdouble.disconnects import replay
from agentdouble.mcp_hosting.calls import Calls
from agentdouble.mcp_hosting.refusals import INTERNAL_ERROR, OPERATIONS, PARSE_ERROR, failure
from agentdouble.openapi.operation import described
from agentdouble.threads import import_in_thread, run_in_thread

if TYPE_CHECKING:
    from mcp.server import Server, ServerRequestContext
    from mcp.server.context import CallNext, HandlerResult
    from mcp.server.streamable_http import EventStore
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

BODY_LIMIT = 4 * 1024 * 1024  # bytes
IDLE_TIMEOUT_S = 1800.0
MAX_SESSIONS = 10_000
STOP_WITHIN_S = 2.0

_log = logging.getLogger(__name__)
mistakes.tell_in_short("mcp.server.streamable_http", ClientDisconnect)


@described(OPERATIONS)
class Endpoint:
    """Serves a low-level ``mcp.server.Server``, both eras of the protocol, sessions over SSE.

    The first request calls ``make_server`` in a thread and imports the MCP SDK. If the server
    fails to start or breaks off, the current requests get a 503, and the next request starts it
    again. Requests are answered inside ``running()``, which any task may enter::

        endpoint = Endpoint(lambda: server)
        async with endpoint.running():
            ...  # endpoint(scope, receive, send)

    A body larger than ``body_limit`` (bytes) is refused with 413, and a session ends when it has
    been idle for ``idle_timeout_s``. With an ``event_store``, clients can resume streams after
    ``retry_interval_ms``. The host and the guard decide who may call.
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
        if not _sends_json(scope):  # the SDK refuses this, too, without a body in its format
            refusal = failure(400, "A POST needs the header Content-Type: application/json.")
            await refusal(scope, receive, send)
            return
        if scope["method"] == "POST":
            receive, body = await _read(receive, self._body_limit)
            try:
                strict_json.check(body)
            except strict_json.NoNumberError as error:
                await failure(400, f"Parse error: {error}.", PARSE_ERROR)(scope, receive, send)
                return
        if self._run is None or self._run.over:
            # The server's tasks must not run in the context of the first request.
            self._run = self._context.copy().run(_Run, self._make_manager)
        await self._run.answer(scope, receive, send)

    async def _make_manager(self) -> StreamableHTTPSessionManager:
        await import_in_thread("mcp.server.streamable_http_manager")
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        server = await run_in_thread(self._make_server)  # a large definition takes a while
        if _contained not in server.middleware:
            server.middleware.insert(0, _contained)
        return StreamableHTTPSessionManager(
            server,
            event_store=self._event_store,
            retry_interval=self._retry_interval_ms,
            session_idle_timeout=self._idle_timeout_s,
            max_request_body_size=self._body_limit,
            max_sessions=self._max_sessions,
        )


def _sends_json(scope: Scope) -> bool:
    given: str = Headers(scope=scope).get("content-type", "")
    return scope["method"] != "POST" or given.lower().startswith("application/json")


async def _read(receive: Receive, limit: int) -> tuple[Receive, bytes]:
    """Return a body, and what receives it again; stop beyond the limit, which the SDK refuses."""
    messages: list[Message] = []
    body = b""
    more = True
    while more and len(body) <= limit:
        messages.append(await receive())
        body += messages[-1].get("body", b"")
        more = messages[-1].get("more_body", False)
    return replay(messages, receive), body


class _Run:
    """A server from its start to its end."""

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
                self._started.set_result(manager.asgi_app)
                await self._stopping.wait()
        except Exception:
            _log.exception("An MCP server broke off.")
        finally:
            if not self._started.done():
                self._started.set_result(_not_started)
            self._calls.cancel()


async def _contained(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Call a handler; turn an exit that would end the event loop into an ordinary exception."""
    try:
        return await call_next(ctx)
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"A handler raised {type(error).__name__}.") from error


def _broken_off() -> Response:
    return failure(503, "The server broke off; its log says why. Try again.", INTERNAL_ERROR)


async def _not_started(scope: Scope, receive: Receive, send: Send) -> None:
    answer = failure(503, "The server did not start; its log says why.", INTERNAL_ERROR)
    await answer(scope, receive, send)
