"""A double answers httpx's calls to the cloud's hosts; no call reaches the network.

respx intercepts requests below httpx, so streams are still streams, and starlette's test client is
not affected, because it sends nothing. A request to a host of the cloud goes to the double with the
Host that was signed, a request to this machine passes, and any other is refused. respx only sees
httpx: ``offline`` refuses the requests of other libraries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx

from agentdouble.unmocked_http import AsyncTransport, Transport
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
_NO_KEPT = httpx.Limits(max_keepalive_connections=0)  # its loop may end before the next call


class PlatformMock:
    """The cloud as code with httpx sees it, while a double answers for it.

    ``router`` is respx's router: routes that are added to it come first. ``requests`` are the
    requests that the double received, ``unexpected`` the errors of refused requests.
    """

    def __init__(self, target: Target, hosts: Collection[str]) -> None:
        self.target = target
        self.hosts = tuple(hosts)
        self.requests: list[httpx.Request] = []
        self.unexpected: list[UnexpectedHostError] = []
        self.router: respx.MockRouter = _Router(self)

    def refused(self, error: UnexpectedHostError) -> UnexpectedHostError:
        """Store an error, so that it is reported even if the code under test hides it."""
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
    """respx's hook in httpx; it ignores Unix sockets, which lead to no other machine."""

    name = f"agentdouble-{len(Mocker.registry)}"  # unique if imported again

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
    """respx's router, which passes on to the double any request that no route answers."""

    def __init__(self, mock: PlatformMock) -> None:
        super().__init__(assert_all_called=False, using=_Mocker.name)
        self._mock = mock
        verify = transport.options(mock.target, _TIMEOUT_S)["verify"]
        self._blocking = Transport(own=True, verify=verify, trust_env=False, limits=_NO_KEPT)
        self._async = AsyncTransport(own=True, verify=verify, trust_env=False, limits=_NO_KEPT)

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
    """Answer httpx's calls to these hosts with the double at a target, inside the context."""
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
        # so that the double uses the cloud's address when it reports its own
        headers=[*request.headers.raw, (b"X-Forwarded-Proto", request.url.scheme.encode())],
        content=request.content,
        extensions=extensions,
    )
