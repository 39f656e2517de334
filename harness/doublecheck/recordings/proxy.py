"""The recording proxy: an application that forwards each request and records the exchange.

Bodies are streamed in both directions, so events arrive as they are sent. A signature covers the
Host, which is the proxy's. So clients sign with a key pair of the proxy; the proxy verifies the
signature and signs again with the target's key pair. A process that does not know the proxy's key
pair cannot get a request signed.
"""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import parse_qs

import httpx
from starlette.applications import Starlette
from starlette.requests import Request as Incoming
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Send

from agentdouble import guard, signing
from agentdouble.canonical import read_query
from agentdouble.errors import SignatureError
from agentdouble.signing import ALGORITHM, Credentials
from doublecheck.client import transport
from doublecheck.recordings.recording_file import KEPT
from doublecheck.target.surfaces import surface_of
from doublecheck.target.target import Target
from doublecheck.wire.calls import Request
from doublecheck.wire.exchanges import Exchange

TIMEOUT_S = 330.0  # the time limit of code, and some more
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_OF_THE_CONNECTION = frozenset(
    [
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "host",
        "proxy-authorization",
        "accept-encoding",
    ]
)
_OF_THE_SIGNATURE = frozenset(
    ["authorization", "x-date", "x-content-sha256", "x-security-token", "content-type"]
)


def application(target: Target, own: Credentials, record: Callable[[Exchange], None]) -> ASGIApp:
    """Return the proxy in front of a target; it calls ``record`` with each finished exchange.

    Clients sign with the key pair ``own``. Requests of web pages, and requests whose Host is not
    this machine, are refused.
    """
    proxy = _Proxy(target, own, record)
    app = Starlette(
        routes=[Route("/{path:path}", proxy.forward, methods=list(METHODS))], lifespan=proxy.open
    )
    return guard.Guard(app, guard.Policy())


class _Proxy:
    def __init__(
        self, target: Target, own: Credentials, record: Callable[[Exchange], None]
    ) -> None:
        self._target = target
        self._own = own
        self._record = record
        self._http: httpx.AsyncClient

    @asynccontextmanager
    async def open(self, _app: Starlette) -> AsyncIterator[None]:
        """Keep connections to the target open for as long as the proxy serves."""
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))  # clients keep their own
        options = transport.options(self._target, TIMEOUT_S)
        async with transport.client_async(**options, cookies=no_cookies) as self._http:
            yield

    async def forward(self, request: Incoming) -> Response:
        """Forward a request and return the answer as a stream."""
        watch = _Watch(request, self._record)
        try:
            passed = await self._passed(request, watch)
            answer = await self._http.send(passed, stream=True)
        except _NotPassedOnError as error:
            return _error_response(error.status, str(error))
        except httpx.HTTPError as error:
            watch.over(f"{type(error).__name__}: {error}")
            return _error_response(
                502, f"The target did not answer: {type(error).__name__}: {error}"
            )
        except BaseException:  # the client has disconnected, or the proxy ends
            watch.over("The request broke off.")
            raise
        watch.answered(answer)
        passing = _Passing(watch.body(answer), answer.status_code)
        passing.raw_headers = _kept(answer.headers)
        return passing

    async def _passed(self, request: Incoming, watch: _Watch) -> httpx.Request:
        query = request.url.query
        path = request.scope.get("raw_path", request.url.path.encode()).decode("latin-1")
        action = "Action" in parse_qs(query)
        surface = "control_plane" if action else surface_of(request.url.path)
        url = self._target.at(surface) + path + (f"?{query}" if query else "")
        if request.headers.get("authorization", "").startswith(f"{ALGORITHM} "):
            return await self._signed_anew(request, url, watch)
        headers = [(n, v) for n, v in request.headers.items() if n not in _OF_THE_CONNECTION]
        headers.append(("accept-encoding", "identity"))  # compression delays chunks
        length = request.headers.get("content-length", "0")
        empty = length == "0" and "transfer-encoding" not in request.headers
        content = b"" if empty else watch.request_body(request.stream())
        return self._http.build_request(request.method, url, headers=headers, content=content)

    async def _signed_anew(self, request: Incoming, url: str, watch: _Watch) -> httpx.Request:
        body = await request.body()
        watch.keep_request_body(body)
        try:
            authorization = signing.verify(
                _signed_parts(request, body),
                credentials_of={self._own.access_key: self._own}.get,
                wall=dt.datetime.now(dt.timezone.utc),
            )
        except SignatureError as error:
            raise _NotPassedOnError(
                401, f"{error} Clients of a recording sign with the key pair that it printed."
            ) from None
        if self._target.credentials is None:
            raise _NotPassedOnError(
                502,
                "A signed request must be signed anew for the target, whose key pair is not "
                "known: set PLATFORM_ACCESS_KEY and PLATFORM_SECRET_KEY for doublecheck record.",
            )
        signed = signing.sign(
            request.method,
            url,
            body,
            credentials=self._target.credentials,
            region=authorization.scope.region,
            service=authorization.scope.service,
            when=dt.datetime.now(dt.timezone.utc),
            content_type=request.headers.get("content-type", "application/json"),
        )
        dropped = _OF_THE_CONNECTION | _OF_THE_SIGNATURE | {"content-length"}
        headers = {n: v for n, v in request.headers.items() if n not in dropped}
        return self._http.build_request(
            request.method, url, headers={**headers, **signed}, content=body
        )


class _Watch:
    """The record of one exchange while the proxy forwards it."""

    def __init__(self, request: Incoming, record: Callable[[Exchange], None]) -> None:
        query = request.url.query
        self._path = request.url.path + (f"?{query}" if query else "")
        self._request = request
        self._record = record
        self._request_bytes, self._answer_bytes = bytearray(), bytearray()
        self._request_cut = self._answer_cut = False
        self._status: int | None = None
        self._headers: Mapping[str, str] = {}
        self._began = time.monotonic()
        self._is_over = False

    def keep_request_body(self, chunk: bytes) -> None:
        """Record a chunk of the request's body."""
        room = KEPT - len(self._request_bytes)
        self._request_bytes += chunk[:room]
        self._request_cut = self._request_cut or len(chunk) > room

    async def request_body(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Forward and record the chunks of the request's body."""
        async for chunk in chunks:
            self.keep_request_body(chunk)
            yield chunk

    def answered(self, answer: httpx.Response) -> None:
        """Record the status and headers of the answer."""
        self._status, self._headers = answer.status_code, dict(answer.headers)

    async def body(self, answer: httpx.Response) -> AsyncGenerator[bytes, None]:
        """Forward the chunks of the answer, and finish the record at its end or failure."""
        error: str | None = "The client disconnected before the answer ended."
        try:
            async for chunk in answer.aiter_bytes():
                room = KEPT - len(self._answer_bytes)
                self._answer_bytes += chunk[:room]
                self._answer_cut = self._answer_cut or len(chunk) > room
                if _is_last(answer):  # the client does not wait for the rest
                    self.over(None)
                yield chunk
            error = None
        except httpx.HTTPError as broken:
            error = f"{type(broken).__name__}: {broken}"
            raise
        finally:
            self.over(error)
            await answer.aclose()

    def over(self, error: str | None) -> None:
        """Finish the record and pass it on; only the first call does so."""
        if self._is_over:
            return
        self._is_over = True
        request = Request(
            self._request.method,
            self._path,
            dict(self._request.headers),
            bytes(self._request_bytes),
        )
        self._record(
            Exchange(
                request,
                self._status,
                self._headers,
                bytes(self._answer_bytes),
                error,
                time.monotonic() - self._began,
                self._request_cut,
                self._answer_cut,
            )
        )


class _Passing(StreamingResponse):
    """An answer that streams from another source, which is closed when the answer ends."""

    body_iterator: AsyncGenerator[bytes, None]

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self.body_iterator):
            await super().stream_response(send)


class _NotPassedOnError(Exception):
    """A request that is not forwarded to the target, and the status of its answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def _error_response(status: int, message: str) -> Response:
    return JSONResponse({"error": {"message": message, "type": "RecordingProxy"}}, status)


def _is_last(answer: httpx.Response) -> bool:
    length: str | None = answer.headers.get("content-length")
    return str(answer.num_bytes_downloaded) == length


def _kept(headers: httpx.Headers) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer that are also valid for the proxy's client."""
    dropped = {*_OF_THE_CONNECTION, "content-encoding"}
    if "content-encoding" in headers:  # the answer is decoded on the way
        dropped.add("content-length")
    pairs = [(name.lower(), value) for name, value in headers.raw]
    return [(name, value) for name, value in pairs if name.decode("latin-1") not in dropped]


def _signed_parts(request: Incoming, body: bytes) -> signing.Request:
    count: Counter[str] = Counter(name.decode("latin-1") for name, _ in request.headers.raw)
    scope: Mapping[str, Any] = request.scope
    return signing.Request(
        method=request.method,
        path=scope["path"],
        query=read_query(scope["query_string"]),
        headers=dict(request.headers),
        body=body,
        repeated=frozenset(name for name, times in count.items() if times > 1),
    )
