"""The protocol over gRPC: the SDK's service over an application's handler; imports grpcio."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import grpc
import grpc.aio
from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.grpc_handler import GrpcHandler, GrpcServerCallContextBuilder
from a2a.types.a2a_pb2_grpc import add_A2AServiceServicer_to_server
from a2a.utils.errors import A2AError, InternalError, VersionNotSupportedError
from google.protobuf.message import DecodeError
from starlette.requests import HTTPConnection

from agentdouble import guard, serving
from agentdouble.admission import Address
from agentdouble.apps.a2a.callers import Callers
from agentdouble.apps.a2a.cards import GRPC_VERSION
from agentdouble.apps.a2a.reading import VERSION_HEADER, check_version

if TYPE_CHECKING:
    from agentdouble.apps.a2a.app import A2AApp
    from agentdouble.apps.a2a.over_grpc import Place

FAILED = "The application failed. Its log says why."

_log = logging.getLogger(__name__)


def serve(app: A2AApp, place: Place) -> tuple[Any, int]:
    """Return a server that listens for an application's calls, and its port.

    Raises AddressInUseError if the port is taken.
    """
    callers = Callers(app.keys)
    door = _Door(callers, place, asks=bool(app.keys or place.api_key))
    server, port = serving.open_grpc(place.host, place.port, place.body_limit, [door])
    door.at = (place.host, port)
    register: Callable[..., None] = add_A2AServiceServicer_to_server
    register(_Service(app, _Contexts(callers)), server)
    return server, port


class _Door(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Refuses a call without its key, or of whom that keeps out, before its message is read."""

    def __init__(self, callers: Callers, place: Place, *, asks: bool) -> None:
        self._callers = callers
        self._api_key = place.api_key
        self._refuses = None if asks else place.refuses
        self.at = (place.host, place.port)

    async def intercept_service(self, continuation: Callable[..., Any], call: Any) -> Any:
        """Return what answers a call."""
        connection = _connection(call.invocation_metadata)
        key = self._api_key
        if (key is None or guard.has_key(connection.headers, key)) and self._callers.admits(
            connection
        ):
            return _reading(await continuation(call), self._check)
        return grpc.stream_unary_rpc_method_handler(_refuse)

    async def _check(self, context: Any) -> None:
        if self._refuses is not None and await self._refuses(_peer(context.peer()), self.at):
            what = "This asks for no credentials, and does not answer the code of a session."
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, what)


class _Contexts(GrpcServerCallContextBuilder):
    """Tells callers apart as over HTTP, by the same keys."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers

    def build(self, context: Any) -> ServerCallContext:
        """Return the context of a call; raise VersionNotSupportedError."""
        connection = _connection(context.invocation_metadata())
        headers = connection.headers
        _check_version(headers.get(VERSION_HEADER, ""))
        return ServerCallContext(
            user=self._callers.caller(connection),
            state={"headers": dict(headers)},
            requested_extensions=get_requested_extensions(headers.getlist(HTTP_EXTENSION_HEADER)),
        )


class _Service(GrpcHandler):
    """Asks the application for its handler with each call: a reset makes another one."""

    def __init__(self, app: A2AApp, contexts: _Contexts) -> None:
        super().__init__(None, contexts)  # type: ignore[arg-type]
        self._app = app

    async def _handle_unary(
        self, request: Any, context: Any, handler_func: Callable[..., Any], default_response: Any
    ) -> Any:
        async def handled(call: ServerCallContext) -> Any:
            with _answered():
                self.request_handler = (await self._app.started()).service.handler
                return await handler_func(call)

        return await super()._handle_unary(request, context, handled, default_response)

    async def _handle_stream(
        self, request: Any, context: Any, handler_func: Callable[..., Any]
    ) -> AsyncIterator[Any]:
        async def handled(call: ServerCallContext) -> AsyncIterator[Any]:
            with _answered():
                self.request_handler = (await self._app.started()).service.handler
                async for event in handler_func(call):
                    yield event

        async for event in super()._handle_stream(request, context, handled):
            yield event


@contextmanager
def _answered() -> Iterator[None]:
    """Answer an exception that is none of the protocol's without its text."""
    try:
        yield
    except A2AError:
        raise
    except Exception as error:
        _log.error("A call over gRPC failed.", exc_info=error)
        raise InternalError(FAILED) from error


def _peer(text: str) -> Address:
    """Read an address as gRPC writes it: ``ipv4:127.0.0.1:50051``, ``ipv6:%5B::1%5D:50051``."""
    host, _, port = unquote(text).partition(":")[2].rpartition(":")
    return host.strip("[]"), int(port)


def _reading(method: Any, check: Callable[[Any], Awaitable[None]]) -> Any:
    """Return a method that reads its message by itself: gRPC would log rubbish as our failure."""
    if method is None:  # there is none of that name
        return None

    async def read(data: bytes, context: Any) -> Any:
        await check(context)
        try:
            return method.request_deserializer(data)
        except DecodeError as error:
            return await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    async def unary(data: bytes, context: Any) -> Any:
        return await method.unary_unary(await read(data, context), context)

    async def stream(data: bytes, context: Any) -> AsyncIterator[Any]:
        async for event in method.unary_stream(await read(data, context), context):
            yield event

    if method.response_streaming:
        return grpc.unary_stream_rpc_method_handler(stream, None, method.response_serializer)
    return grpc.unary_unary_rpc_method_handler(unary, None, method.response_serializer)


async def _refuse(_requests: Any, context: Any) -> None:
    what = "Send 'authorization: Bearer <key>' in the metadata."
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, what)


def _check_version(asked: str) -> None:
    check_version(asked)
    if not asked.strip().startswith(GRPC_VERSION.partition(".")[0]):
        raise VersionNotSupportedError(
            f"Version {asked or '0.3'!r} is not spoken over gRPC: send a2a-version: {GRPC_VERSION}."
        )


def _connection(metadata: Any) -> HTTPConnection:
    """Return metadata as the headers of a request."""
    pairs = [(name, _bytes(value)) for name, value in metadata or ()]
    headers = [(name.lower().encode(), value) for name, value in pairs]
    return HTTPConnection({"type": "http", "headers": headers})


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
