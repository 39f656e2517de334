"""What callers and the log get when a double stops while answering."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from agentdouble import Emulator, SimpleApp
from agentdouble.journal.failures import STOPPING, ServerErrorMiddleware

pytestmark = pytest.mark.smoke

HEADERS = {"user_id": "ann", "session_id": "s1"}


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a stopping double cut off its answers at once."""
    monkeypatch.setattr("agentdouble.server.starting.GRACE_S", 0)


def sleeping(started: threading.Event) -> SimpleApp:
    app = SimpleApp("sleeper")

    async def forever() -> AsyncIterator[str]:
        yield "first"
        await asyncio.Event().wait()

    @app.entrypoint
    async def main(payload: dict[str, Any], _headers: dict[str, str]) -> Any:
        if "stream" in payload:
            return forever()
        started.set()
        return await asyncio.Event().wait()

    return app


@pytest.mark.usefixtures("at_once")
def test_a_call_cut_off_by_stopping_gets_503(caplog: pytest.LogCaptureFixture) -> None:
    """It has the application's error shape; the log has one line and no traceback."""
    caplog.set_level("INFO", "agentdouble.journal.entries")
    started = threading.Event()
    emulator = Emulator(sleeping(started)).start()
    with ThreadPoolExecutor(1) as pool:
        url = f"{emulator.url}/invoke"
        call = pool.submit(httpx.post, url, json={}, headers=HEADERS, timeout=60)
        assert started.wait(60)
        emulator.stop()
        answer = call.result()

    error = {"message": STOPPING.message, "type": "ServerStopping"}
    assert (503, {"error": error}) == (answer.status_code, answer.json())
    (line,) = caplog.messages
    assert line.startswith("POST /invoke 503, ")


@pytest.mark.usefixtures("at_once")
def test_a_stream_cut_off_by_stopping_is_incomplete(caplog: pytest.LogCaptureFixture) -> None:
    """Its connection closes before the end of the body, and nothing is logged."""
    emulator = Emulator(sleeping(threading.Event())).start()

    body = {"stream": True}
    with httpx.stream(
        "POST", f"{emulator.url}/invoke", json=body, headers=HEADERS, timeout=60
    ) as answer:
        lines = answer.iter_lines()
        assert "data: first" == next(lines)
        emulator.stop()
        with pytest.raises(httpx.RemoteProtocolError):
            list(lines)

    assert [] == caplog.messages


def test_a_call_cancelled_by_its_caller_stays_cancelled() -> None:
    """An in-process caller gets no answer instead."""

    async def sleep(_scope: Scope, _receive: Receive, _send: Send) -> None:
        await asyncio.Event().wait()

    async def unused(*message: Message) -> Message:
        raise AssertionError(message)

    async def cancelled() -> None:
        called = asyncio.ensure_future(
            ServerErrorMiddleware(sleep)({"type": "http"}, unused, unused)
        )
        await asyncio.sleep(0)
        called.cancel()
        await called

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
