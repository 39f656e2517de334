from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from agentdouble import Emulator, SimpleApp
from agentdouble.journal.failures import STOPPING, ServerErrorMiddleware
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.server import exhaustion
from agentdouble.server.guard import render_json
from tests.agentdouble import mcp_wire
from tests.agentdouble.calling import body_of, call, http

REFERENCE = re.compile(r"failure-[0-9a-f]{12}")


async def broken(*_: object, **__: object) -> Any:
    """Raise as a bug in the double would."""
    raise KeyError("a mistake of ours")


@pytest.fixture
def double() -> Iterator[Emulator]:
    with Emulator() as double:
        yield double


@pytest.fixture
def check_told(double: Emulator, caplog: pytest.LogCaptureFixture) -> Callable[[str], None]:
    """Return a check that the log and the journal have the answer's reference and no other."""

    def check(text: str) -> None:
        assert text.startswith(("The double failed: KeyError: 'a mistake", "The double failed. "))
        (reference,) = set(REFERENCE.findall(text))
        records = [record for record in caplog.records if record.name.startswith("agentdouble.")]
        (record,) = [record for record in records if record.levelno >= logging.ERROR]
        assert reference in record.getMessage()
        assert record.exc_info
        assert record.exc_info[0] is KeyError
        journal = http.get(f"{double.url}/_emulator/journal").json()["entries"]
        assert any([reference] == entry["failures"] for entry in journal)
        assert all(entry["failures"] in ([], [reference]) for entry in journal)

    return check


def test_the_control_plane_reports_a_failure(
    double: Emulator, check_told: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It uses its own envelope."""
    monkeypatch.setattr(SandboxSessions, "get_or_create", broken)

    answer = call(double, body_of(double, "1"))

    error = answer.json()["ResponseMetadata"]["Error"]
    assert (500, "InternalError") == (answer.status_code, error["Code"])
    check_told(error["Message"])


def test_a_lack_of_descriptors_is_reported_in_few_lines(
    double: Emulator, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each caller hears of it; the log has the first, and later the number of the others."""

    async def exhausted(*_: object, **__: object) -> Any:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(exhaustion, "_teller", exhaustion._Teller())
    monkeypatch.setattr(SandboxSessions, "get_or_create", exhausted)
    answers = [call(double, body_of(double, "1")) for _ in range(4)]
    monkeypatch.setattr(exhaustion._teller, "_quiet_until_s", 0)
    answers.append(call(double, body_of(double, "1")))

    messages = [answer.json()["ResponseMetadata"]["Error"]["Message"] for answer in answers]
    assert all("Too many open files (failure-" in message for message in messages)
    logged = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [None, None] == [record.exc_info for record in logged]
    first, later = (record.getMessage() for record in logged)
    assert REFERENCE.findall(messages[0]) == REFERENCE.findall(first)
    assert "So did 3 others since the last message." in later


def beneath_an_agent(double: Emulator, path: str, body: Any, **headers: str) -> httpx.Response:
    return http.post(double.url + path, json=body, headers={"user_id": "u", **headers})


RUN = {
    "appName": "coder",
    "userId": "u",
    "sessionId": "s",
    "newMessage": {"role": "user", "parts": [{"text": "1"}]},
}
A2A = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "1"}]}}
RPC = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": A2A}
V1 = {"A2A-Version": "1.0"}
MESSAGES: dict[str, Callable[[Emulator], tuple[httpx.Response, int, Callable[[Any], str]]]] = {
    "/invoke": lambda double: (
        beneath_an_agent(double, "/invoke", {"prompt": "1"}, session_id="s"),
        500,
        lambda body: str(body["error"]["message"]),
    ),
    "/run": lambda double: (
        beneath_an_agent(double, "/run", RUN),
        500,
        lambda body: str(body["detail"]),
    ),
    "/run_sse": lambda double: (
        beneath_an_agent(double, "/run_sse", RUN),
        200,  # it has begun: its last event is the error
        lambda body: str(body["error"]),
    ),
    "/mcp": lambda double: (
        http.post(
            f"{double.url}/mcp",
            json=mcp_wire.modern("coder", {"prompt": "1"}),
            headers=mcp_wire.modern_headers(None, "coder"),
        ),
        200,  # of the transport: the JSON-RPC error is the answer
        lambda body: str(body["error"]["message"]) if body["error"]["code"] == -32603 else "",
    ),
    "A2A": lambda double: (
        beneath_an_agent(double, "/", RPC, **V1),
        200,
        lambda body: str(body["error"]["message"]) if body["error"]["code"] == -32603 else "",
    ),
    "A2A by REST": lambda double: (
        beneath_an_agent(double, "/message:send", A2A, **V1),
        500,
        lambda body: str(body["error"]["message"]),
    ),
}


@pytest.mark.parametrize("surface", MESSAGES)
def test_a_failure_under_an_agent_is_an_error_of_its_surface(
    double: Emulator,
    check_told: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    surface: str,
) -> None:
    """The agent itself does not report it."""
    http.post(f"{double.url}/apps/coder/users/u/sessions/s", json={})
    monkeypatch.setattr(SandboxSessions, "get_or_create", broken)

    answer, status, message = MESSAGES[surface](double)

    assert status == answer.status_code, answer.text
    last = answer.text.strip().splitlines()[-1].removeprefix("data: ")
    check_told(message(json.loads(last)))


@pytest.mark.anyio
async def test_a_started_answer_is_aborted(caplog: pytest.LogCaptureFixture) -> None:
    """An open WebSocket is closed with the reference as the reason."""

    async def application(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
        else:
            await send({"type": "websocket.accept"})
        raise KeyError("a mistake of ours")

    for kind in ("http", "websocket"):
        sent: list[Message] = []

        async def send(message: Message, sent: list[Message] = sent) -> None:
            sent.append(message)

        scope = {"type": kind, "path": "/", "headers": [], "query_string": b""}
        await ServerErrorMiddleware(application, render_json)(scope, nothing, send)

        (reference,) = REFERENCE.findall(caplog.text)
        caplog.clear()
        if kind == "http":
            assert ["http.response.start"] == [message["type"] for message in sent]
        else:
            assert {"type": "websocket.close", "code": 1011, "reason": reference} == sent[-1]


@pytest.mark.anyio
async def test_a_disconnected_client_is_not_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    """The server gets back the OSError it raised."""

    class GoneError(OSError):
        pass

    async def application(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "websocket.close", "code": 1000})

    async def send(_: Message) -> None:
        raise GoneError

    scope = {"type": "websocket", "path": "/", "headers": [], "query_string": b""}
    with pytest.raises(GoneError):
        await ServerErrorMiddleware(application, render_json)(scope, nothing, send)
    assert "" == caplog.text


async def nothing() -> Message:
    raise AssertionError("nobody reads the request")


def fails(*_: object, **__: object) -> None:
    """Raise as a bug in synchronous code of the double would."""
    raise KeyError("a mistake of ours")


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


@pytest.mark.smoke
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


@pytest.mark.smoke
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


@pytest.mark.smoke
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
