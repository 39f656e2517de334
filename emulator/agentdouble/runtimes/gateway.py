"""The single access point: finds the runtime of a request and passes the request to an instance."""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from agentdouble import serving
from agentdouble.errors import (
    AccessError,
    HostingError,
    InstanceLostError,
    NotBuiltError,
    RuntimeBusyError,
    RuntimeEndedError,
    RuntimeStartError,
    UnknownRuntimeError,
)
from agentdouble.runtimes import PREFIX, proxying
from agentdouble.runtimes.authentication import GatewayAuthenticator, render
from agentdouble.runtimes.instance import Instance
from agentdouble.runtimes.monitoring import Monitor, Observed
from agentdouble.runtimes.proxying import Address, Proxy, read
from agentdouble.runtimes.runtime import Runtime
from agentdouble.runtimes.runtimes import Runtimes

_log = logging.getLogger(__name__)

LARGEST_HEAD = 64 * 1024  # bytes
_TRIES = 5
_END_SEEN_S = 0.2  # a process's end is seen after its connections' end
_NAMES_SHOWN = 20
_MCP_SESSION = b"mcp-session-id"
_SESSIONS = (_MCP_SESSION, b"session_id")  # MCP first: only one instance knows it
_STATUSES: dict[type[HostingError], int] = {
    InstanceLostError: 502,
    RuntimeStartError: 502,
    RuntimeBusyError: 503,
    RuntimeEndedError: 503,
    UnknownRuntimeError: 404,
}
_WORDS: dict[type[HostingError], str] = {
    AccessError: "access",
    RuntimeStartError: "start",
    RuntimeBusyError: "busy",
    RuntimeEndedError: "ended",
}


class Gateway:
    """An ASGI application below ``PREFIX``: ``/runtimes/<name>/<path>``."""

    def __init__(
        self, runtimes: Runtimes, gatekeeper: GatewayAuthenticator, proxy: Proxy, monitor: Monitor
    ) -> None:
        self._runtimes = runtimes
        self._gatekeeper = gatekeeper
        self._proxy = proxy
        self._monitor = monitor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = read(scope)
        runtime = self._runtimes.find(address.name)
        if runtime is None:
            known = [one.name for one in self._runtimes.all()[:_NAMES_SHOWN]]
            unknown = UnknownRuntimeError(address.name, known)
            await _refusal(unknown, address.path)(scope, receive, send)
            return
        with self._monitor.request(runtime.name) as observed:
            request = _Request(scope, receive, _noting(observed, send))
            await self._pass_on(request, runtime, address, observed)

    def authenticates(self, scope: Scope) -> bool:
        """Return whether a request is for a runtime that authenticates its callers itself."""
        path: str = scope["path"]
        name = read(scope).name if path.startswith(PREFIX) else ""
        runtime = self._runtimes.find(name)
        return runtime is not None and runtime.definition.authorizer is not None

    async def _pass_on(
        self, request: _Request, runtime: Runtime, address: Address, observed: Observed
    ) -> None:
        """Have an instance answer the request, or answer with the reason why none did."""
        if request.scope["type"] == "websocket":
            error = NotBuiltError("A WebSocket to a runtime")
            await request.answer(_error(501, "NotBuilt", str(error)))
            return
        if request.head_size > LARGEST_HEAD:
            await request.answer(_headers_too_large(LARGEST_HEAD))
            return
        try:
            admitted = _Request(*await self._gatekeeper.admit(runtime, address.path, *request))
            await self._have_answered(admitted, runtime, address, observed)
        except HostingError as error:
            observed.error = _word(error)
            if isinstance(error, InstanceLostError):
                _log.warning("%s", error)
            if isinstance(error, InstanceLostError) and error.amid:
                await serving.hang_up(request.scope, request.receive)  # half is not the whole
            else:
                await request.answer(_refusal(error, address.path))

    async def _have_answered(
        self, request: _Request, runtime: Runtime, address: Address, observed: Observed
    ) -> None:
        """Pass a request to an instance; try another instance if the first could not be reached."""
        for left in reversed(range(_TRIES)):
            try:
                await self._try(request, runtime, address, observed)
                return
            except InstanceLostError as error:
                if not error.unreached or not left:
                    raise

    async def _try(
        self, request: _Request, runtime: Runtime, address: Address, observed: Observed
    ) -> None:
        scope, receive, send = request
        async with runtime.lease(_session(scope)) as instance:
            observed.leased()
            if serving.is_closed(scope):
                raise ClientDisconnect
            if proxying.is_asked_for(scope, address):
                send = proxying.rewriting(scope, address, instance.port, send)
                scope = proxying.uncompressed(scope)
            try:
                keeping = _keeping(runtime, instance, send)
                await self._proxy.pass_on(instance, address, scope, receive, keeping)
            except InstanceLostError as error:
                if error.unreached:
                    instance.failed()
                await asyncio.wait({instance.exited}, timeout=_END_SEEN_S)
                raise


class _Request(NamedTuple):
    scope: Scope
    receive: Receive
    send: Send

    @property
    def head_size(self) -> int:
        """The size of the request's headers in bytes."""
        return sum(len(name) + len(value) for name, value in self.scope["headers"])

    async def answer(self, response: Response) -> None:
        """Answer without an instance."""
        await response(self.scope, self.receive, self.send)


def _session(scope: Scope) -> str | None:
    """Return the session of a request; one instance gets all requests of a session."""
    values = (proxying.value(scope["headers"], name) for name in _SESSIONS)
    return next((value.decode("latin-1") for value in values if value), None)


def _keeping(runtime: Runtime, instance: Instance, send: Send) -> Send:
    """Return a ``send`` that binds the MCP session that an answer opens to its instance."""

    async def keep(message: Message) -> None:
        if message["type"] == "http.response.start":
            begun = proxying.value(message["headers"], _MCP_SESSION)
            if begun is not None:
                runtime.keep(begun.decode("latin-1"), instance)
        await send(message)

    return keep


def _noting(observed: Observed, send: Send) -> Send:
    async def note(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            observed.status = message["status"]
        await send(message)

    return note


def _refusal(error: HostingError, path: str) -> Response:
    """Return an error in the simple application's format, or an access error in ``path``'s."""
    if isinstance(error, AccessError):
        return render(error, path)
    kind, headers = type(error).__name__, {}
    if isinstance(error, UnknownRuntimeError):
        kind = "NotFound"
    elif isinstance(error, RuntimeBusyError):
        headers = {"Retry-After": str(error.retry_after_s)}
    return _error(_STATUSES.get(type(error), 500), kind, str(error), headers)


def _headers_too_large(limit: int) -> Response:
    """Return the answer to a request whose headers have more than ``limit`` bytes."""
    message = f"The request's headers are larger than {limit} bytes."
    return _error(431, "HeadersTooLarge", message)


def _word(error: HostingError) -> str:
    """Return a word for what went wrong, for the metrics."""
    if isinstance(error, InstanceLostError):
        return "broken" if error.amid else "lost"
    return _WORDS.get(type(error), "")


def _error(status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": {"message": message, "type": kind}}, status, headers)
