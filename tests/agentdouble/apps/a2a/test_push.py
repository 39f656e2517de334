"""Push notifications to a receiver on this machine, and refused receivers."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme

from agentdouble import A2AApp
from agentdouble.apps.a2a.push import Receivers
from tests.agentdouble.apps.a2a.wire import BOUND_S, Wire, served

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass
class Receiver:
    """A receiver of push notifications on a free port."""

    url: str = ""
    bodies: list[Any] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, kinds: int) -> None:
        """Wait for a number of notifications."""
        while len(self.bodies) < kinds:
            self.arrived.clear()
            await self.arrived.wait()


@asynccontextmanager
async def receiving(
    *, hangs: bool = False, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    over = asyncio.Event()
    answering: set[asyncio.Task[Any] | None] = set()

    async def on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answering.add(asyncio.current_task())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            int(line.split(":")[1])
            for line in head.splitlines()
            if line.lower().startswith("content-length")
        )
        receiver.heads.append(head)
        receiver.bodies.append(json.loads(await reader.readexactly(length)))
        receiver.arrived.set()
        if hangs:
            await over.wait()
        writer.write(OK)
        writer.close()

    server = await asyncio.start_server(on, "127.0.0.1", 0, ssl=tls)
    receiver.url = f"http{'s' * bool(tls)}://127.0.0.1:{server.sockets[0].getsockname()[1]}/here"
    try:
        yield receiver
    finally:
        over.set()
        await asyncio.gather(*(future for future in answering if future is not None))
        server.close()


def params_for(url: str, **more: Any) -> dict[str, Any]:
    """Return the parameters of a message with a push configuration."""
    return {
        "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]},
        "configuration": {"taskPushNotificationConfig": {"url": url, **more}},
    }


def bounded(conversation: Callable[[Wire], Awaitable[None]], app: A2AApp) -> None:
    async def run() -> None:
        async with served(app) as wire:
            await asyncio.wait_for(conversation(wire), BOUND_S)

    asyncio.run(run())


@pytest.mark.slow
def test_hanging_receiver_times_out() -> None:
    """The turn waits for the notification's timeout, and ends."""

    async def conversation(wire: Wire) -> None:
        async with receiving(hangs=True) as receiver:
            task = (await wire.rpc("SendMessage", params_for(receiver.url)))["result"]["task"]
            assert "TASK_STATE_COMPLETED" == task["status"]["state"]

    bounded(conversation, A2AApp(runner="echo"))


@pytest.mark.parametrize("trusted", [True, False])
def test_a_receiver_may_have_a_certificate_of_the_environment(
    trusted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    if trusted:
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))

    async def conversation(wire: Wire) -> None:
        async with receiving(tls=tls) as receiver:
            await wire.rpc("SendMessage", params_for(receiver.url))
            assert trusted == bool(receiver.bodies)

    bounded(conversation, A2AApp(runner="echo"))
    assert trusted != ("CERTIFICATE_VERIFY_FAILED" in caplog.text)


ELSEWHERE = [
    "http://example.com/",
    "http://169.254.169.254/latest/meta-data",
    "http://10.0.0.1/",
    "http://[::ffff:10.0.0.1]/",
    "http://127.0.0.1.example.com/",
    "http://127.0.0.1@example.com/",
    "http://localhost.example.com/",
    "https://2130706433.example/",
]


@pytest.mark.parametrize("url", ELSEWHERE)
def test_remote_receiver_is_never_called(url: str) -> None:
    """It may be configured, but gets nothing unless its host is allowed."""
    host = urlsplit(url).hostname or ""

    assert [False, False, True, True] == [
        asyncio.run(Receivers(allowed).called(url))
        for allowed in ((), ("another.example",), (host,), ("*",))
    ]
