from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import respx

from agentdouble.core.unmocked_http import AsyncClient, AsyncTransport, Client, Transport
from tests.doublecheck import bad_servers
from tests.doublecheck.bad_servers import Behaviour, answer

Send = Callable[[str, bool], httpx.Response]

TIMEOUT = httpx.Timeout(30, read=0.3)  # a busy machine takes its time to connect


def blocking(url: str, mocked: bool) -> httpx.Response:
    transport = Transport(verify=False) if mocked else httpx.HTTPTransport(verify=False)
    with httpx.Client(transport=transport, timeout=TIMEOUT) as client:
        return client.get(url)


def awaited(url: str, mocked: bool) -> httpx.Response:
    async def send() -> httpx.Response:
        kind: Any = AsyncTransport if mocked else httpx.AsyncHTTPTransport
        async with httpx.AsyncClient(transport=kind(verify=False), timeout=TIMEOUT) as client:
            return await client.get(url)

    return asyncio.run(send())


@pytest.mark.slow
@pytest.mark.parametrize("send", [blocking, awaited])
@pytest.mark.parametrize(
    "behave",
    [
        bad_servers.hang,
        bad_servers.reset,
        bad_servers.drip,
        bad_servers.raw(b"SSH-2.0\r\n"),
        bad_servers.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"),
    ],
)
def test_errors_match_httpx(send: Send, behave: Behaviour) -> None:
    """So do their messages."""
    with bad_servers.serving(behave) as server:
        messages = []
        for mocked in (True, False):
            with pytest.raises(httpx.TransportError) as raised:
                send(server.url, mocked)
            messages.append((type(raised.value), str(raised.value), str(raised.value.request.url)))

    assert messages[0] == messages[1]


@pytest.mark.parametrize("send", [blocking, awaited])
@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "ftp://127.0.0.1", "https://127.0.0.1:1"])
def test_unreachable_addresses_fail_like_httpx(send: Send, url: str) -> None:
    """This covers closed ports and unknown schemes."""
    with pytest.raises(httpx.TransportError) as mock:
        send(url, True)
    with pytest.raises(httpx.TransportError) as real:
        send(url, False)

    assert (type(real.value), str(real.value)) == (type(mock.value), str(mock.value))


@pytest.mark.parametrize("send", [blocking, awaited])
def test_answers_match_httpx(send: Send) -> None:
    with bad_servers.serving(answer(b'{"a": 1}', more="A: 1\r\nA: 2\r\n")) as server:
        mock, real = send(server.url, True), send(server.url, False)

    assert {"a": 1} == mock.json()
    assert (real.headers.raw, real.http_version) == (mock.headers.raw, mock.http_version)


def test_mocks_of_httpx_are_bypassed(monkeypatch: pytest.MonkeyPatch) -> None:
    """This covers respx on both layers, and patched classes."""
    for kind in (httpx.Client, httpx.AsyncClient):
        for name in ("send", "request", "build_request", "_send_single_request"):
            monkeypatch.setattr(kind, name, None)

    async def awaited(url: str) -> int:
        async with AsyncClient(transport=AsyncTransport(verify=False)) as client:
            return (await client.get(url)).status_code

    with (
        bad_servers.serving(answer(b"{}")) as server,
        respx.mock(using="httpcore"),
        respx.mock(using="httpx"),
    ):
        with Client(transport=Transport(verify=False)) as client:
            assert 200 == client.get(server.url).status_code
        assert 200 == asyncio.run(awaited(server.url))
