"""A double answers httpx's calls to the cloud's hosts; no call reaches the network.

The double answers in httpx's transports, so streams are still streams. Starlette's test client is
not affected, because it sends nothing. A request to a host of the cloud goes to the double with the
Host that was signed. Any other request goes to the test's own mocks, such as respx's and
pytest-httpx's; without one, a request to this machine passes, and any other is refused. This only
affects httpx: ``offline()`` refuses the requests of other libraries.
"""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any
from unittest import mock
from unittest.mock import patch

import httpx

from agentdouble.core.unmocked_http import AsyncTransport, Transport
from doublecheck.client import transport
from doublecheck.errors import MissingExtraError, UnexpectedHostError, UnseenRequestError
from doublecheck.target.target import Target, is_loopback

Refuse = Callable[[str, "str | None"], Exception]

_LIBRARIES = ("requests", "httpx2", "aiohttp", "urllib3", "urllib.request", "http.client")

_TIMEOUT_S = 60.0
# a kept connection's loop may end before the next call
_NO_KEPT = httpx.Limits(max_keepalive_connections=0)


@contextmanager
def offline(refuse: Refuse) -> Iterator[None]:
    """Block name lookups and connections to other machines inside the context.

    ``refuse`` gets the host, and the library that connects if it is known; its result is raised
    there. This applies to every thread of this process.
    """
    look_up, connect = socket.getaddrinfo, socket.socket.connect

    def looked_up(host: Any, *arguments: Any, **named: Any) -> Any:
        _check(host, refuse)
        return look_up(host, *arguments, **named)

    def connected(self: socket.socket, address: Any) -> None:
        _check(address[0] if isinstance(address, tuple) else None, refuse)
        connect(self, address)

    with (
        mock.patch.object(socket, "getaddrinfo", looked_up),
        mock.patch.object(socket.socket, "connect", connected),
    ):
        yield


def _check(host: Any, refuse: Refuse) -> None:
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    if isinstance(name, str) and not _is_here(name):
        raise refuse(name, _library(sys._getframe()))


def _is_here(name: str) -> bool:
    if name in ("", "localhost", socket.gethostname()):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _library(frame: FrameType | None) -> str | None:
    """Return the HTTP library that sends the request; of several, the one that the code called."""
    library = None
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        library = next(
            (name for name in _LIBRARIES if f"{module}.".startswith(f"{name}.")), library
        )
        frame = frame.f_back
    return library


try:
    import respx
    from respx.mocks import HTTPXMocker
    from respx.models import AllMockedAssertionError, PassThrough
except ImportError:
    raise MissingExtraError(
        "respx, which platform_mock needs,", install="agentdouble[mock]"
    ) from None


class PlatformMock:
    """The cloud, as code that uses httpx sees it while a double answers.

    ``router`` is a router of respx; its routes come first. ``requests`` are the requests that the
    double received, ``unexpected`` the errors of refused requests.
    """

    def __init__(self, target: Target, hosts: Collection[str]) -> None:
        self.target = target
        self.hosts = tuple(hosts)
        self.requests: list[httpx.Request] = []
        self.unexpected: list[UnexpectedHostError] = []
        self.router = respx.MockRouter(assert_all_called=False)
        verify = transport.options(target, _TIMEOUT_S)["verify"]
        self._blocking = Transport(verify=verify, trust_env=False, limits=_NO_KEPT)
        self._async = AsyncTransport(verify=verify, trust_env=False, limits=_NO_KEPT)

    def refused(self, error: UnexpectedHostError) -> UnexpectedHostError:
        """Store an error, so that it is reported even if the code under test hides it."""
        self.unexpected.append(error)
        return error

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Answer requests of httpx inside the context."""
        send = httpx.HTTPTransport.handle_request
        send_async = httpx.AsyncHTTPTransport.handle_async_request

        def handle_request(pool: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
            if _is_unix(pool):
                return send(pool, request)
            request.read()
            try:
                return _unread(self.router.handler(request))
            except PassThrough:
                pass
            except AllMockedAssertionError:
                if self._is_answered(request):
                    return self._blocking.handle_request(_at(self.target, request))
            with self._passing(request, send, pool):
                return send(pool, request)

        async def handle_async_request(
            pool: httpx.AsyncHTTPTransport, request: httpx.Request
        ) -> httpx.Response:
            if _is_unix(pool):
                return await send_async(pool, request)
            await request.aread()
            try:
                return _unread(await self.router.async_handler(request))
            except PassThrough:
                pass
            except AllMockedAssertionError:
                if self._is_answered(request):
                    return await self._async.handle_async_request(_at(self.target, request))
            with self._passing(request, send_async, pool):
                return await send_async(pool, request)

        with (
            patch.object(httpx.HTTPTransport, "handle_request", handle_request),
            patch.object(httpx.AsyncHTTPTransport, "handle_async_request", handle_async_request),
            patch.object(HTTPXMocker, "handler", self._unless_cloud(HTTPXMocker.handler)),
            patch.object(
                HTTPXMocker, "async_handler", self._unless_cloud(HTTPXMocker.async_handler)
            ),
        ):
            yield

    def _unless_cloud(self, handler: Callable[[httpx.Request], Any]) -> Any:
        """Let requests to the cloud pass ``respx.mock(using="httpx")``, which is above transports."""

        def handle(request: httpx.Request) -> Any:
            if request.url.host in self.hosts:
                raise PassThrough("The double answers.", request=request, origin=respx.Route())
            return handler(request)

        return staticmethod(handle)

    def _is_answered(self, request: httpx.Request) -> bool:
        if request.url.host not in self.hosts:
            return False
        self.requests.append(request)
        return True

    @contextmanager
    def _passing(self, request: httpx.Request, send: Any, pool: Any) -> Iterator[None]:
        """Pass a request to the mocks below, or to this machine. Refuse any other."""
        if not (_is_mocked(send, pool) or is_loopback(str(request.url))):
            raise self.refused(UnexpectedHostError(request.url.host, self.hosts))
        try:
            yield
        except UnseenRequestError as error:  # a mock let it pass
            self.unexpected.remove(error)
            raise self.refused(UnexpectedHostError(error.host, self.hosts)) from None

    def __repr__(self) -> str:
        return f"<PlatformMock of {', '.join(self.hosts)} at {self.target.url}>"


@contextmanager
def mocking(target: Target, hosts: Sequence[str]) -> Iterator[PlatformMock]:
    """Answer httpx's calls to these hosts with the double at a target, inside the context."""
    mock = PlatformMock(target, hosts)

    def refuse(host: str, library: str | None) -> UnexpectedHostError:
        return mock.refused(UnseenRequestError(host, hosts, library))

    with mock.answering(), offline(refuse):
        yield mock


def _is_unix(pool: httpx.HTTPTransport | httpx.AsyncHTTPTransport) -> bool:
    """Whether a transport uses a Unix socket, which cannot reach another machine."""
    return getattr(pool._pool, "_uds", None) is not None


def _is_mocked(send: Any, pool: httpx.HTTPTransport | httpx.AsyncHTTPTransport) -> bool:
    """Whether a mock has replaced httpx's method, or the httpcore method that it calls."""
    below = type(pool._pool)
    method = getattr(below, "handle_request", None) or getattr(below, "handle_async_request", None)
    return not (_is_of("httpx", send) and _is_of("httpcore", method))


def _is_of(package: str, method: Any) -> bool:
    module = getattr(method, "__globals__", {}).get("__name__", "")
    return str(module).partition(".")[0] == package


def _unread(response: httpx.Response) -> httpx.Response:
    """Return a route's response, which respx has read, as an unread one."""
    return httpx.Response(
        response.status_code,
        headers=response.headers,
        stream=response.stream,
        extensions=response.extensions,
    )


def _at(target: Target, request: httpx.Request) -> httpx.Request:
    """Return a request to the double's address with the Host unchanged."""
    at = httpx.URL(target.url)
    extensions = {"timeout": request.extensions.get("timeout", {})}
    return httpx.Request(
        request.method,
        request.url.copy_with(scheme=at.scheme, host=at.host, port=at.port),
        # so that the double reports the cloud's address as its own
        headers=[*request.headers.raw, (b"X-Forwarded-Proto", request.url.scheme.encode())],
        content=request.content,
        extensions=extensions,
    )
