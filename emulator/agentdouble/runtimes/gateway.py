"""The single access point: finds the runtime of a request and passes the request to an instance."""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from agentdouble import errors
from agentdouble.core.clock import Clock
from agentdouble.runtimes import PREFIX, proxying
from agentdouble.runtimes.authentication.authorizers import render
from agentdouble.runtimes.authentication.gatekeeper import GatewayAuthenticator
from agentdouble.runtimes.instance import RuntimeInstance
from agentdouble.runtimes.monitoring import Monitor, Observed
from agentdouble.runtimes.proxying import Address, Proxy, read
from agentdouble.runtimes.registry import RuntimeRegistry
from agentdouble.runtimes.runtime import Runtime
from agentdouble.server.protocols import hang_up, is_closed

_log = logging.getLogger(__name__)

LARGEST_HEAD = 64 * 1024  # bytes
_TRIES = 5
_END_SEEN_S = 0.2  # a process's end is seen after its connections' end
_NAMES_SHOWN = 20
_MCP_SESSION = b"mcp-session-id"
_SESSIONS = (_MCP_SESSION, b"session_id")  # MCP first: only one instance knows it
# status, type, word for the metrics
_KINDS: dict[type[errors.HostingError], tuple[int, str, str]] = {
    errors.InstanceLostError: (502, "InstanceLostError", "lost"),
    errors.RuntimeStartError: (502, "RuntimeStartError", "start"),
    errors.RuntimeBusyError: (503, "RuntimeBusyError", "busy"),
    errors.RuntimeEndedError: (503, "RuntimeEndedError", "ended"),
    errors.UnknownRuntimeError: (404, "NotFound", ""),
    errors.AccessError: (0, "", "access"),
}


class RuntimeGateway:
    """An ASGI application below ``PREFIX``: ``/runtimes/<name>/<path>``."""

    def __init__(
        self,
        registry: RuntimeRegistry,
        monitor: Monitor,
        clock: Clock,
        authenticator: GatewayAuthenticator,
    ) -> None:
        self._registry = registry
        self._authenticator = authenticator
        self._proxy = Proxy()
        self._monitor = monitor
        self._clock = clock

    async def close(self) -> None:
        """Close the connections to instances."""
        await self._proxy.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = read(scope)
        runtime = self._registry.find(address.name)
        if runtime is None:
            names = [runtime.name for runtime in self._registry.runtimes()[:_NAMES_SHOWN]]
            unknown = errors.UnknownRuntimeError(address.name, names)
            await _refusal(unknown, address.path)(scope, receive, send)
            return
        with self._monitor.request(runtime.name) as observed:
            request = _Request(scope, receive, _noting(observed, send))
            await self._pass_on(request, runtime, address, observed)

    def authenticates(self, scope: Scope) -> bool:
        """Return whether a request is for a runtime that authenticates its callers itself."""
        path: str = scope["path"]
        name = read(scope).name if path.startswith(PREFIX) else ""
        runtime = self._registry.find(name)
        return runtime is not None and runtime.definition.authorizer is not None

    async def _pass_on(
        self, request: _Request, runtime: Runtime, address: Address, observed: Observed
    ) -> None:
        """Have an instance answer the request, or answer with the reason why none did."""
        scope = request.scope
        if scope["type"] == "websocket":
            error = errors.NotBuiltError("A WebSocket to a runtime")
            await _error(501, "NotBuilt", str(error))(*request)
            return
        if sum(len(name) + len(value) for name, value in scope["headers"]) > LARGEST_HEAD:
            message = f"The request's headers are larger than {LARGEST_HEAD} bytes."
            await _error(431, "HeadersTooLarge", message)(*request)
            return
        try:
            admitted = await self._authenticator.admit(runtime, address.path, *request)
            await self._have_answered(_Request(*admitted), runtime, address, observed)
        except errors.HostingError as error:
            broken = isinstance(error, errors.InstanceLostError) and error.amid
            observed.error = "broken" if broken else _KINDS.get(type(error), (500, "", ""))[2]
            if isinstance(error, errors.InstanceLostError):
                _log.warning("%s", error)
            if broken:
                # half an answer must not look like a whole one
                await hang_up(scope, request.receive)
            else:
                await _refusal(error, address.path)(*request)

    async def _have_answered(
        self, request: _Request, runtime: Runtime, address: Address, observed: Observed
    ) -> None:
        """Pass a request to an instance; try another instance if the first could not be reached."""
        for tries_left in reversed(range(_TRIES)):
            try:
                await self._try(request, runtime, address, observed)
                return
            except errors.InstanceLostError as error:
                if not error.unreached or not tries_left:
                    raise

    async def _try(
        self, request: _Request, runtime: Runtime, address: Address, observed: Observed
    ) -> None:
        scope, receive, send = request
        async with runtime.lease(_session(scope)) as instance:
            observed.leased()
            if is_closed(scope):
                raise ClientDisconnect
            if proxying.is_card(scope, address):
                send = proxying.CardRewriter(scope, address, instance.port, send)
                scope = proxying.uncompressed(scope)
            try:
                sending = self._sending(runtime, instance, send)
                await self._proxy.pass_on(instance, address, scope, receive, sending)
            except errors.InstanceLostError as error:
                if error.unreached:
                    runtime.retire(instance, "crashed")
                await asyncio.wait({instance.exited}, timeout=_END_SEEN_S)
                raise

    def _sending(self, runtime: Runtime, instance: RuntimeInstance, send: Send) -> Send:
        """Return a ``send`` that binds the MCP session that an answer opens to its instance.

        An instance counts as idle from the moment its last answer began to be sent: whoever gets
        the answer may move the clock before this process does anything else.
        """

        async def sending(message: Message) -> None:
            instance.idle_since = self._clock.now()
            if message["type"] == "http.response.start":
                session_id = proxying.value(message["headers"], _MCP_SESSION)
                if session_id is not None:
                    runtime.keep(session_id.decode("latin-1"), instance)
            await send(message)

        return sending


class _Request(NamedTuple):
    scope: Scope
    receive: Receive
    send: Send


def _session(scope: Scope) -> str | None:
    """Return the session of a request; one instance gets all requests of a session."""
    values = (proxying.value(scope["headers"], name) for name in _SESSIONS)
    return next((value.decode("latin-1") for value in values if value), None)


def _noting(observed: Observed, send: Send) -> Send:
    async def note(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            observed.status = message["status"]
        await send(message)

    return note


def _refusal(error: errors.HostingError, path: str) -> Response:
    """Return an error in the simple application's format, or an access error in ``path``'s."""
    if isinstance(error, errors.AccessError):
        return render(error, path)
    status, kind, _ = _KINDS.get(type(error), (500, type(error).__name__, ""))
    response = _error(status, kind, str(error))
    if isinstance(error, errors.RuntimeBusyError):
        response.headers["Retry-After"] = str(error.retry_after_s)
    return response


def _error(status: int, kind: str, message: str) -> Response:
    return JSONResponse({"error": {"message": message, "type": kind}}, status)
