"""SimpleApp: one entrypoint over HTTP, and four probes (sections 4.1 and 4.6)."""

from __future__ import annotations

import asyncio
import copy
import inspect
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, closing
from typing import Any, NoReturn, TypeVar, cast

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from agentdouble.apps.contract import check_entrypoint, check_ping, from_application
from agentdouble.apps.simple_responses import (
    ENTRYPOINT_FAILED,
    State,
    entrypoint_failure,
    event,
    failure,
    ping_response,
    result,
    state,
    stream_failure,
)
from agentdouble.core import code_tool, ledger, request_cause, strict_json
from agentdouble.core.clock import Clock
from agentdouble.errors import PlatformError
from agentdouble.journal.failures import KIND, ServerErrorMiddleware, beneath
from agentdouble.openapi import Answer, operation
from agentdouble.openapi.operation import EVENTS, TEXT
from agentdouble.server import guard
from agentdouble.server.application_loop import ApplicationLoop
from agentdouble.server.disconnects import EventStreamResponse
from agentdouble.server.sockets import address_of, open_socket
from agentdouble.server.starting import serve

INVALID_JSON = "Invalid JSON payload. Please provide a valid JSON object in the request body."


PATHS = ("/invoke", "/ping", "/health", "/readiness", "/liveness")


SLOW_PING_S = 1.0


Entrypoint = TypeVar("Entrypoint", bound=Callable[..., Any])


Ping = TypeVar("Ping", bound=Callable[[], Any])


_log = logging.getLogger(__name__)


_STATE = (Answer(State | str), Answer(str, media_type=TEXT))


def default_ping() -> str:
    """Return the answer of an application that has no ping function (PRB-05)."""
    return "pong!"


class SimpleApp:
    """A simple application: an ASGI application that any server can host.

    ``name`` is the agent's name in the sandbox session ids of run_code. On a server that supports
    the lifespan protocol, entrypoints run on a separate event loop, so an entrypoint that blocks
    does not stop the probes. On other servers they run on the caller's loop.
    """

    def __init__(self, name: str = "agent", *, clock: Clock | None = None) -> None:
        self.name = name
        self.clock = clock or Clock()
        self._entrypoint: Callable[..., Any] | None = None
        self._ping: Callable[[], Any] | None = None
        self._host()

    def _host(self) -> None:
        self._loop = ApplicationLoop()
        self._app = Starlette(
            routes=[
                Route("/invoke", self._on_invoke, methods=["POST"]),
                Route("/ping", self._on_ping),
                Route("/health", self._on_health),
                Route("/readiness", self._on_ready),
                Route("/liveness", self._on_ready),
            ],
            lifespan=lambda _app: self.lifespan(),
        )

    def clone(self) -> SimpleApp:
        """Return an application with the same functions, to be served beside this one."""
        clone = copy.copy(self)
        clone._host()
        return clone

    @property
    def routes(self) -> list[BaseRoute]:
        """The routes of the entrypoint and the probes."""
        return self._app.routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def entrypoint(self, function: Entrypoint) -> Entrypoint:
        """Register the entrypoint: ``async def f(payload, headers)``, or an async generator.

        Raises DecorationError for any other function (DEC-01).
        """
        check_entrypoint(function)
        self._entrypoint = function
        return function

    @property
    def registered(self) -> Callable[..., Any] | None:
        """The registered entrypoint, or None."""
        return self._entrypoint

    def ping(self, function: Ping) -> Ping:
        """Register the ping function: a sync function without parameters.

        Raises DecorationError for any other function (DEC-02).
        """
        check_ping(function)
        self._ping = function
        return function

    def async_task(self, function: Callable[..., Any]) -> NoReturn:
        """Raise NotImplementedError: the specification only plans it (DEC-03)."""
        ledger.choose("U-ASYNC-TASK")
        raise NotImplementedError(
            "async_task is planned by the specification and not implemented (DEC-03)."
        )

    def run(self, host: str = "0.0.0.0", port: int = 8000) -> None:  # noqa: S104 (specified)
        """Serve the application until SIGINT or SIGTERM, by default at 0.0.0.0:8000.

        Raises AddressInUseError if the port is taken.
        """
        listener = open_socket(host, port)
        print(f"{self.name} answers at {address_of(listener)}", flush=True)  # noqa: T201
        guarded = guard.GuardMiddleware(ServerErrorMiddleware(self), guard.Policy(hosts=None))
        serve(guarded, listener, lambda: None)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Run entrypoints on a separate event loop inside this context."""
        await self._loop.start()
        try:
            yield
        finally:
            await self._loop.stop()

    @operation(
        (Answer(Any), Answer(str, media_type=EVENTS), Answer(str, media_type=TEXT)),
        body=dict[str, Any],
    )
    async def _on_invoke(self, request: Request) -> Response:
        """Call the entrypoint: a returned value is answered, a stream is sent as SSE."""
        if self._entrypoint is None:
            return failure(
                404,
                "Entrypoint function is not set. Please register a function with @app.entrypoint.",
                "NotFound",
            )
        refusal = _missing_headers(request)
        if refusal is not None:
            return refusal
        try:
            payload = await strict_json.read(await request.body(), surrogates=True)
        except strict_json.NoNumberError as error:
            return failure(400, f"{INVALID_JSON} {error}.", "BadRequest")
        except (ValueError, RecursionError):
            payload = None
        if not isinstance(payload, dict):
            return failure(400, INVALID_JSON, "BadRequest")
        return await self._invoke(self._entrypoint, payload, dict(request.headers))

    async def _invoke(
        self, entrypoint: Callable[..., Any], payload: Mapping[str, Any], headers: dict[str, str]
    ) -> Response:
        invocation = self._invocation(headers)
        try:
            with code_tool.invoked_by(invocation), request_cause.passed_on(headers):
                value = entrypoint(payload, headers)
                if inspect.iscoroutine(value):
                    value = await self._loop.run(value)
        except HTTPException as error:
            detail = error.detail if error.status_code < 500 else ENTRYPOINT_FAILED
            return failure(error.status_code, detail, "HTTPException")
        except PlatformError as error:
            if not code_tool.is_refused_for_its_id(error, invocation):
                return self._failed(error)
            # 400, not the 500 of an exception (INV-07): only the caller can correct the ids.
            _log.warning(
                "The caller of %s sent an id that run_code cannot use: %s", self.name, error
            )
            return failure(400, error.message, error.code)
        except Exception as error:
            return self._failed(error)
        if inspect.isasyncgen(value) or inspect.isgenerator(value):
            stream = self._stream(_chunks(value, invocation, headers))
            return EventStreamResponse(stream)
        return result(value)

    def _failed(self, error: Exception) -> Response:
        cause = beneath(error)
        if cause is not None:
            return failure(500, cause, KIND)
        _log.error("The entrypoint of %s raised.", self.name, exc_info=from_application(error))
        return entrypoint_failure(error)

    async def _stream(self, chunks: AsyncIterator[Any]) -> AsyncIterator[bytes]:
        try:
            async with aclosing(self._loop.iterate(chunks)) as items:
                async for chunk in items:
                    yield event(chunk)
        except Exception as error:
            if beneath(error) is None:
                message = "The entrypoint of %s raised in its stream."
                _log.error(message, self.name, exc_info=from_application(error))
            yield stream_failure(error)

    def _invocation(self, headers: Mapping[str, str]) -> code_tool.Invocation:
        return code_tool.Invocation(
            user_id=headers.get("user_id") or code_tool.DEFAULT_USER,
            session_id=headers.get("session_id") or code_tool.DEFAULT_SESSION,
            agent=self.name,
        )

    @operation((Answer(Any), Answer(str, media_type=TEXT), Answer(None, 404)))
    async def _on_ping(self, _request: Request) -> Response:
        """Return what the ping function returns."""
        ping = self._ping
        if ping is None:
            if ledger.choose("U-PROBE-ERROR") == "absent-404":
                return Response(status_code=404)
            ping = default_ping
        # In a thread, because a ping function is sync and may block.
        answer = asyncio.ensure_future(run_in_threadpool(ping))
        done, _ = await asyncio.wait({answer}, timeout=SLOW_PING_S)
        if not done:
            _log.warning("The ping function of %s takes longer than 1 s.", self.name)
            if ledger.choose("U-PING-SLOW") == "503":
                return failure(503, "The ping function takes longer than 1 s.", "SlowPing")
        try:
            return ping_response(await answer)
        except Exception as error:
            _log.exception("The ping function of %s raised.", self.name)
            return failure(500, f"The ping function raised: {error}", type(error).__name__)

    @operation(_STATE)
    async def _on_health(self, _request: Request) -> Response:
        """Report that the application is healthy."""
        return state("healthy", self.clock)

    @operation(_STATE)
    async def _on_ready(self, _request: Request) -> Response:
        """Report that the application is ready, or alive."""
        return state("success", self.clock)


async def _chunks(
    value: AsyncIterator[Any] | Iterator[Any],
    invocation: code_tool.Invocation,
    headers: Mapping[str, str],
) -> AsyncIterator[Any]:
    """Yield an entrypoint's chunks, with run_code bound to the invocation.

    When this is closed, it closes the entrypoint's generator, which would otherwise wait for the
    garbage collector.
    """
    with code_tool.invoked_by(invocation), request_cause.passed_on(headers):
        if inspect.isgenerator(value):
            with closing(value):
                for chunk in value:
                    yield chunk
        else:
            async with aclosing(cast("AsyncGenerator[Any, None]", value)) as chunks:
                async for chunk in chunks:
                    yield chunk


def _missing_headers(request: Request) -> Response | None:
    missing = [name for name in ("user_id", "session_id") if not request.headers.get(name)]
    if not request.headers.get("content-type", "").startswith("application/json"):
        missing.append("Content-Type: application/json")
    if not missing or ledger.choose("U-INVOKE-HEADERS") != "enforced":
        return None
    return failure(400, f"The request lacks {', '.join(missing)}.", "BadRequest")
