"""The protocol over gRPC: the SDK's service with the application's handler. This imports grpcio.

It runs on the server's event loop, with the same handler as HTTP, in the context of the code that
starts it.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
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
from agentdouble.apps.a2a.request_checks import VERSION_HEADER, check_version
from agentdouble.journal import Entry

if TYPE_CHECKING:
    from agentdouble.apps.a2a.grpc_listener import GetHandler, GrpcBinding

Recorded = Callable[[Any], AbstractContextManager[Entry]]

FAILED = "The application failed. Its log says why."

_log = logging.getLogger(__name__)


def serve(binding: GrpcBinding, keys: Sequence[str], handler: GetHandler) -> tuple[Any, int]:
    """Return a server that listens for the application's calls, and its port.

    Raises AddressInUseError if the port is taken.
    """
    callers = Callers(keys)
    authenticator = _Authenticator(callers, binding, needs_key=bool(keys or binding.api_key))
    server, port = serving.open_grpc(
        binding.host, binding.port, binding.body_limit, [authenticator]
    )
    authenticator.at = (binding.host, port)
    register: Callable[..., None] = add_A2AServiceServicer_to_server
    register(_Service(handler, _Contexts(callers)), server)
    return server, port


class _Authenticator(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Refuses calls without a key or from callers that are not allowed, before it reads the
    message."""

    def __init__(self, callers: Callers, binding: GrpcBinding, *, needs_key: bool) -> None:
        self._callers = callers
        self._api_key = binding.api_key
        self._refuses = None if needs_key else binding.refuses
        self._record = binding.record
        self.at = (binding.host, binding.port)

    async def intercept_service(self, continuation: Callable[..., Any], call: Any) -> Any:
        """Return the handler that answers a call."""
        connection = _connection(call.invocation_metadata)
        recorded = partial(self._recorded, call.method, connection)
        key = self._api_key
        if (key is None or guard.has_key(connection.headers, key)) and self._callers.admits(
            connection
        ):
            return _reading(await continuation(call), self._check, recorded)
        return grpc.stream_unary_rpc_method_handler(partial(_refuse, recorded))

    @contextmanager
    def _recorded(self, path: str, connection: HTTPConnection, context: Any) -> Iterator[Entry]:
        """Write a call into the journal, if there is one; its status is a header of the answer."""
        if self._record is None:
            yield Entry(0, dt.datetime.now(dt.timezone.utc), "POST", path, ())
            return
        host, port = self.at
        headers = [(b"host", f"{host}:{port}".encode()), *connection.headers.raw]
        said = {"method": "POST", "scheme": "grpc", "path": path, "query_string": b""}
        with self._record({**said, "headers": headers}) as entry:
            try:
                yield entry
            finally:
                entry.status = 200  # gRPC's own status follows the answer
                entry.response_head = [(b"grpc-status", str(_code(context)).encode())]

    async def _check(self, context: Any) -> None:
        if self._refuses is not None and await self._refuses(_peer(context.peer()), self.at):
            what = "This asks for no credentials, and does not answer the code of a session."
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, what)


class _Contexts(GrpcServerCallContextBuilder):
    """Identifies callers by the same keys as over HTTP."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers

    def build(self, context: Any) -> ServerCallContext:
        """Return the context of a call; raise VersionNotSupportedError for an unknown version."""
        connection = _connection(context.invocation_metadata())
        headers = connection.headers
        _check_version(headers.get(VERSION_HEADER, ""))
        return ServerCallContext(
            user=self._callers.caller(connection),
            state={"headers": dict(headers)},
            requested_extensions=get_requested_extensions(headers.getlist(HTTP_EXTENSION_HEADER)),
        )


class _Service(GrpcHandler):
    """Gets the application's handler for each call, because a reset creates a new one."""

    def __init__(self, handler: GetHandler, contexts: _Contexts) -> None:
        super().__init__(None, contexts)  # type: ignore[arg-type]
        self._handler = handler

    async def _handle_unary(
        self, request: Any, context: Any, handler_func: Callable[..., Any], default_response: Any
    ) -> Any:
        async def handled(call: ServerCallContext) -> Any:
            with _answered():
                self.request_handler = await self._handler()
                return await handler_func(call)

        return await super()._handle_unary(request, context, handled, default_response)

    async def _handle_stream(
        self, request: Any, context: Any, handler_func: Callable[..., Any]
    ) -> AsyncIterator[Any]:
        async def handled(call: ServerCallContext) -> AsyncIterator[Any]:
            with _answered():
                self.request_handler = await self._handler()
                async for event in handler_func(call):
                    yield event

        async for event in super()._handle_stream(request, context, handled):
            yield event


@contextmanager
def _answered() -> Iterator[None]:
    """Answer an exception that is not an A2AError, without its text."""
    try:
        yield
    except A2AError:
        raise
    except Exception as error:
        _log.error("A call over gRPC failed.", exc_info=error)
        raise InternalError(FAILED) from error


def _peer(text: str) -> Address:
    """Parse an address in gRPC's notation: ``ipv4:127.0.0.1:50051``, ``ipv6:%5B::1%5D:50051``."""
    host, _, port = unquote(text).partition(":")[2].rpartition(":")
    return host.strip("[]"), int(port)


def _reading(method: Any, check: Callable[[Any], Awaitable[None]], recorded: Recorded) -> Any:
    """Return a method that parses its message itself: gRPC logs an invalid one as our error."""
    if method is None:  # no method has that name
        return None
    written = method.response_serializer

    async def read(data: bytes, context: Any, entry: Entry) -> Any:
        entry.received_bytes = len(data)
        await check(context)
        try:
            return method.request_deserializer(data)
        except DecodeError as error:
            return await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    async def unary(data: bytes, context: Any) -> bytes:
        with recorded(context) as entry:
            message = await read(data, context, entry)
            answer: bytes = written(await method.unary_unary(message, context))
            entry.sent_bytes = len(answer)
            return answer

    async def stream(data: bytes, context: Any) -> None:
        with recorded(context) as entry:
            message = await read(data, context, entry)
            async for event in method.unary_stream(message, context):
                piece: bytes = written(event)
                entry.sent_bytes += len(piece)
                await context.write(piece)

    if method.response_streaming:
        return grpc.unary_stream_rpc_method_handler(stream)
    return grpc.unary_unary_rpc_method_handler(unary)


async def _refuse(recorded: Recorded, _requests: Any, context: Any) -> None:
    what = "Send 'authorization: Bearer <key>' in the metadata."
    with recorded(context):
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, what)


def _code(context: Any) -> int:
    """Return the number of the status of a call that ends now."""
    code = context.code()
    number: int = code.value[0] if isinstance(code, grpc.StatusCode) else code or 0
    return number


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
