"""httpx's calls to the cloud's hosts, answered by a double; nothing reaches the network.

respx intercepts below httpx what it would send, so that streams stream, and starlette's test client,
which sends nothing, never meets it. What is for a host of the cloud goes to the double with
the Host that it was signed for, what is for this machine passes, and all else is refused. respx
sees httpx alone: ``offline`` refuses what other libraries are about to send.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx

from doublecheck.client import transport
from doublecheck.errors import MissingExtraError, UnexpectedHostError
from doublecheck.target.addresses import is_loopback
from doublecheck.target.target import Target

try:
    import respx
    from respx.mocks import HTTPCoreMocker, Mocker
    from respx.models import AllMockedAssertionError, PassThrough
except ImportError:
    raise MissingExtraError(
        "respx, which platform_mock needs,", install="agentdouble[mock]"
    ) from None

_TIMEOUT_S = 60.0
_NO_KEPT = httpx.Limits(max_keepalive_connections=0)  # none would outlive its event loop


class PlatformMock:
    """The cloud, as code with httpx sees it while a double answers in its stead.

    ``router`` is respx's: routes that are added to it are asked first. ``requests`` are those that
    the double was sent, ``unexpected`` the errors about all that went elsewhere.
    """

    def __init__(self, target: Target, hosts: Collection[str]) -> None:
        self.target = target
        self.hosts = tuple(hosts)
        self.requests: list[httpx.Request] = []
        self.unexpected: list[UnexpectedHostError] = []
        self.router: respx.MockRouter = _Router(self)

    def refused(self, error: UnexpectedHostError) -> UnexpectedHostError:
        """Keep an error, so that it is reported even if the code under test hides it."""
        self.unexpected.append(error)
        return error

    def is_answered(self, request: httpx.Request) -> bool:
        """Whether a request is for a host of the cloud; if not, raise PassThrough or an error."""
        if request.url.host in self.hosts:
            self.requests.append(request)
            return True
        if is_loopback(str(request.url)):
            raise PassThrough("It stays on this machine.", request=request, origin=respx.Route())
        raise self.refused(UnexpectedHostError(request.url.host, self.hosts))

    def __repr__(self) -> str:
        return f"<PlatformMock of {', '.join(self.hosts)} at {self.target.url}>"


class _Mocker(HTTPCoreMocker):
    """respx's hook in httpx; it ignores Unix sockets, such as the double's to its sessions."""

    name = f"agentdouble-{len(Mocker.registry)}"  # it is kept when this module is imported anew

    @classmethod
    def _send_sync_request(
        cls, httpx_request: httpx.Request, *, target_spec: Any, instance: Any, **kwargs: Any
    ) -> Any:
        if _is_unix(instance):
            return target_spec(instance, **kwargs)
        return super()._send_sync_request(  # type: ignore[no-untyped-call]
            httpx_request, target_spec=target_spec, instance=instance, **kwargs
        )

    @classmethod
    async def _send_async_request(
        cls, httpx_request: httpx.Request, *, target_spec: Any, instance: Any, **kwargs: Any
    ) -> Any:
        if _is_unix(instance):
            return await target_spec(instance, **kwargs)
        return await super()._send_async_request(  # type: ignore[no-untyped-call]
            httpx_request, target_spec=target_spec, instance=instance, **kwargs
        )


def _is_unix(pool_or_connection: Any) -> bool:
    return getattr(pool_or_connection, "_uds", None) is not None


class _Router(respx.MockRouter):
    """respx's router, with the double behind its routes."""

    def __init__(self, mock: PlatformMock) -> None:
        super().__init__(assert_all_called=False, using=_Mocker.name)
        self._mock = mock
        verify = transport.options(mock.target, _TIMEOUT_S)["verify"]
        self._blocking = httpx.HTTPTransport(verify=verify, trust_env=False, limits=_NO_KEPT)
        self._async = httpx.AsyncHTTPTransport(verify=verify, trust_env=False, limits=_NO_KEPT)

    def handler(self, request: httpx.Request) -> httpx.Response:
        try:
            return super().handler(request)
        except AllMockedAssertionError:
            self._mock.is_answered(request)
        return self._blocking.handle_request(_at(self._mock.target, request))

    async def async_handler(self, request: httpx.Request) -> httpx.Response:
        try:
            return await super().async_handler(request)
        except AllMockedAssertionError:
            self._mock.is_answered(request)
        return await self._async.handle_async_request(_at(self._mock.target, request))


@contextmanager
def mocking(target: Target, hosts: Sequence[str]) -> Iterator[PlatformMock]:
    """Answer httpx's calls to these hosts by the double at a target inside."""
    mock = PlatformMock(target, hosts)
    with mock.router:
        yield mock


def _at(target: Target, request: httpx.Request) -> httpx.Request:
    """Return a request to the double's address with the Host unchanged."""
    at = httpx.URL(target.url)
    extensions = {"timeout": request.extensions.get("timeout", {})}
    return httpx.Request(
        request.method,
        request.url.copy_with(scheme=at.scheme, host=at.host, port=at.port),
        # what the double says of its own address, it says as the cloud's
        headers=[*request.headers.raw, (b"X-Forwarded-Proto", request.url.scheme.encode())],
        content=request.content,
        extensions=extensions,
    )
