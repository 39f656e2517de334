"""httpx's clients and transports, in a form that a test's mock does not see.

respx, pytest-httpx and VCR.py replace methods of httpx and httpcore for the whole process. A test
that mocks a model's API with them would then also answer the requests to a double, and to the
sandboxes behind it. These transports send with a copy of httpcore, whose classes no mock knows, and
these clients have the methods that httpx's had when this module was imported.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

T = TypeVar("T")

_COPY = "agentdouble._httpcore"


def _copied(package: str, name: str) -> ModuleType:
    """Import a second copy of a package under another name."""
    found = importlib.util.find_spec(package)
    assert found is not None
    assert found.origin is not None
    spec = importlib.util.spec_from_file_location(
        name, found.origin, submodule_search_locations=found.submodule_search_locations
    )
    assert spec is not None
    assert spec.loader is not None
    copy = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return copy


if TYPE_CHECKING:
    import httpcore
else:
    httpcore = _copied("httpcore", _COPY)
    for _library in ("anyio", "trio"):  # which httpcore imports late, by the name of the copy
        with suppress(ImportError):
            importlib.import_module(f"{_COPY}._backends.{_library}")

_ERRORS = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
)
_LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=20)


class Transport(httpx.BaseTransport):
    """A transport for ``httpx.Client``, with arguments of ``httpx.HTTPTransport``."""

    def __init__(self, **options: Any) -> None:
        self._pool: httpcore.ConnectionPool = _pool("", **options)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the answer, whose body is not read yet."""
        with _translated():
            answer = self._pool.handle_request(_sent(request))
        return _received(answer, _Body(answer.stream))

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()


class AsyncTransport(httpx.AsyncBaseTransport):
    """A transport for ``httpx.AsyncClient``, as ``Transport``."""

    def __init__(self, **options: Any) -> None:
        self._pool: httpcore.AsyncConnectionPool = _pool("Async", **options)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the answer, whose body is not read yet."""
        with _translated():
            answer = await self._pool.handle_async_request(_sent(request))
        return _received(answer, _AsyncBody(answer.stream))

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        with _translated():
            yield from self._stream

    def close(self) -> None:
        self._stream.close()


class _AsyncBody(httpx.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translated():
            async for part in self._stream:
                yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


def _pool(
    kind: str,
    *,
    verify: Any = True,
    trust_env: bool = True,
    limits: httpx.Limits = _LIMITS,
    proxy: httpx.Proxy | None = None,
    **further: Any,
) -> Any:
    """Return a pool of the copy; ``kind`` begins the names of its classes."""
    options: dict[str, Any] = {
        "ssl_context": httpx.create_ssl_context(verify=verify, trust_env=trust_env),
        "max_connections": limits.max_connections,
        "max_keepalive_connections": limits.max_keepalive_connections,
        "keepalive_expiry": limits.keepalive_expiry,
        **further,
    }
    if proxy is None:
        return getattr(httpcore, f"{kind}ConnectionPool")(**options)
    options |= {"proxy_url": _url(proxy.url), "proxy_auth": proxy.raw_auth}
    if proxy.url.scheme.startswith("socks"):
        return getattr(httpcore, f"{kind}SOCKSProxy")(**options)
    options |= {"proxy_headers": proxy.headers.raw, "proxy_ssl_context": proxy.ssl_context}
    return getattr(httpcore, f"{kind}HTTPProxy")(**options)


def _sent(request: httpx.Request) -> httpcore.Request:
    return httpcore.Request(
        method=request.method,
        url=_url(request.url),
        headers=request.headers.raw,
        content=request.stream,
        extensions=request.extensions,
    )


def _url(url: httpx.URL) -> httpcore.URL:
    return httpcore.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )


def _received(
    answer: httpcore.Response, body: httpx.SyncByteStream | httpx.AsyncByteStream
) -> httpx.Response:
    return httpx.Response(
        answer.status, headers=answer.headers, stream=body, extensions=answer.extensions
    )


@contextmanager
def _translated() -> Iterator[None]:
    """Turn the copy's errors into httpx's errors of the same names."""
    try:
        yield
    except _ERRORS as error:
        raise getattr(httpx, type(error).__name__)(str(error)) from error


def _with_own_methods(kind: type[T]) -> type[T]:
    """Return a class like httpx's that keeps its methods even if a test replaces httpx's."""
    attributes = {
        name: method
        for base in reversed(kind.__mro__)
        for name, method in vars(base).items()
        if isinstance(method, FunctionType) and _is_of_httpx(method)
    }
    return type(kind.__name__, (kind,), attributes)


def _is_of_httpx(method: FunctionType) -> bool:
    """Whether a method is httpx's own, and not one that a test has put there already."""
    module = str(method.__globals__.get("__name__"))
    return module.startswith("httpx.") or module == contextmanager.__module__


Client = _with_own_methods(httpx.Client)
AsyncClient = _with_own_methods(httpx.AsyncClient)
