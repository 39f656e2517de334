"""The transport of both clients: httpx's clients, their options, and the translation of its errors.

Patches of httpx in a test do not affect it.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from httpx._utils import get_environment_proxies

from agentdouble.core import environment
from agentdouble.core.unmocked_http import AsyncClient, AsyncTransport, Client, Transport
from agentdouble.core.urls import is_https
from agentdouble.errors import tracebacks
from doublecheck.core.notebook_repr import without_token
from doublecheck.errors import (
    ArgumentError,
    DoubleCheckError,
    NoAnswerError,
    TargetError,
    UnreachableError,
)
from doublecheck.target.target import Target
from doublecheck.wire.calls import Request

CONNECT_TIMEOUT_S = 10.0
# for checks, comparisons and calibrations: a server may never end a stream
LONGEST_ANSWER_S = 120.0
TICK_S = 0.2
KEPT_S = 4.0  # many servers close an idle connection after 5 s, so an older one is not used
NONE_KEPT = httpx.Limits(max_connections=100, max_keepalive_connections=0)
_LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=KEPT_S)


def options(
    target: Target, timeout_s: float, longest_answer_s: float | None = None
) -> dict[str, Any]:
    """Return the options of an httpx client for a target.

    Requests to this machine use no proxy, and plain http does not load the certificate store (20
    ms). Reading an answer for more than ``longest_answer_s`` raises httpx.ReadTimeout.
    """
    return {
        "timeout": _timeout(timeout_s),
        "loopback": target.loopback,
        "verify": _verify(target),
        "limits": _LIMITS,
        "longest_answer_s": longest_answer_s,
    }


def client(**options: Any) -> httpx.Client:
    """Return a blocking client with ``options()``."""
    http = Client(**_with_transports(Transport, **options))

    def limit(response: httpx.Response) -> None:
        response.stream = _Ending(response.stream, options["longest_answer_s"])

    if options["longest_answer_s"] is not None:
        http.event_hooks["response"].append(limit)
    return http


def client_async(**options: Any) -> httpx.AsyncClient:
    """Return an async client with ``options()``."""
    http = AsyncClient(**_with_transports(AsyncTransport, **options))

    async def limit(response: httpx.Response) -> None:
        response.stream = _Ending(response.stream, options["longest_answer_s"])

    if options["longest_answer_s"] is not None:
        http.event_hooks["response"].append(limit)
    return http


class _Ending(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The content of an answer; reading it fails once that has taken too long.

    The timeout of httpx begins again with each piece, and a server may keep a stream alive with
    comments.
    """

    def __init__(self, stream: Any, within_s: float) -> None:
        self._stream = stream
        self._within_s = within_s
        self._until_s = time.monotonic() + within_s

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            self._check()
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._check()
            yield piece

    def _check(self) -> None:
        if time.monotonic() > self._until_s:
            raise httpx.ReadTimeout(f"the answer has not ended within {self._within_s:g} s")

    def close(self) -> None:
        self._stream.close()

    async def aclose(self) -> None:
        await self._stream.aclose()


def _with_transports(
    kind: Callable[..., Any],
    *,
    loopback: bool,
    verify: Any,
    limits: httpx.Limits,
    longest_answer_s: float | None,
    **options: Any,
) -> dict[str, Any]:
    """Return httpx's options. Given a transport, httpx would ignore the environment's proxies."""
    common = {"trust_env": not loopback, "verify": verify, "limits": limits}
    proxies = {} if loopback else get_environment_proxies()
    mounts = {
        pattern: None if url is None else kind(proxy=httpx.Proxy(url), **common)
        for pattern, url in proxies.items()
    }
    return {**options, "trust_env": not loopback, "transport": kind(**common), "mounts": mounts}


def _verify(target: Target) -> ssl.SSLContext | bool:
    encrypted = any(map(is_https, target.addresses))
    if not encrypted or target.ca_file is None:
        return encrypted
    try:
        return ssl.create_default_context(cafile=target.ca_file)
    except OSError as error:  # also an ssl.SSLError if the file contains no certificate
        raise TargetError(
            f"The CA file {target.ca_file} cannot be read: {error}. Set {environment.CA_FILE} "
            "to a readable file."
        ) from None


def arguments(request: Request) -> dict[str, Any]:
    """Return a request as the arguments of an httpx client's ``request`` and ``stream``."""
    kwargs: dict[str, Any] = {
        "method": request.method,
        "url": request.url,
        "headers": {name: value.encode() for name, value in request.headers.items()},
        "content": request.content,
    }
    if request.timeout_s is not None:
        kwargs["timeout"] = _timeout(request.timeout_s)
    return kwargs


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Turn httpx's errors inside the context into UnreachableError and NoAnswerError."""
    url = without_token(url)
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise UnreachableError(url, _reason(error)) from None
    except (httpx.InvalidURL, httpx.LocalProtocolError, httpx.UnsupportedProtocol) as error:
        raise ArgumentError(
            f"A request to {url} cannot be sent: {_reason(error).rstrip('.')}."
        ) from None
    except httpx.TransportError as error:
        raise NoAnswerError(url, _reason(error)) from None
    except BaseException as error:
        tracebacks.shorten(error)
        raise


@contextmanager
def interruptible() -> Iterator[None]:
    """Wake a notebook's loop regularly, so that it notices an interrupted cell.

    ipykernel's signal handler adds a callback to the loop but does not wake it. Without this, a
    cell that waits for a silent socket or for ``asyncio.sleep()`` would not be interrupted before
    that ends.
    """
    if "ipykernel" not in sys.modules:
        yield
        return
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle

    def tick() -> None:
        nonlocal timer
        timer = loop.call_later(TICK_S, tick)

    timer = loop.call_later(TICK_S, tick)
    try:
        yield
    finally:
        timer.cancel()


def refuse_closed(client: httpx.Client | httpx.AsyncClient, url: str) -> None:
    """Raise DoubleCheckError if a client has been closed."""
    if client.is_closed:
        raise DoubleCheckError(
            f"The platform at {url} has been closed, and so has any double that connect() "
            "started. Call connect() again."
        )


def _timeout(seconds: float) -> httpx.Timeout:
    return httpx.Timeout(seconds, connect=CONNECT_TIMEOUT_S)


def _reason(error: Exception) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return (
            f"its certificate is not trusted: {error}; if it is the platform's, name its CA "
            "file with SSL_CERT_FILE, ca_file in the target's configuration, or --ca-file"
        )
    if "WRONG_VERSION_NUMBER" in str(error):
        return "the server does not speak TLS; try http://"
    if isinstance(error, httpx.RemoteProtocolError) and "without sending a resp" in str(error):
        return f"{error} The server may expect https"
    return str(error) or type(error).__name__
