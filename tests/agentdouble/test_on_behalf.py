"""No request that the double makes for somebody reaches its own routes."""

from __future__ import annotations

import asyncio
import logging
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from agentdouble import Emulator, run_code
from agentdouble.errors import BackendError, EnvelopeError, IssuerError
from agentdouble.mcp_services import McpBackend, OpenApiBackend, openapi
from agentdouble.runtimes.authentication import issuers
from tests.agentdouble import mcp_wire
from tests.agentdouble.calling import TIMEOUT_S, http

KEY = "key-of-the-service"
ADVANCE = {"advance_s": 3600, "jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture
def names(double: Emulator) -> list[str]:
    """The double's address by several names of this machine."""
    port = urlsplit(double.url).port
    hosts = ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0.0.0.0"]
    return [f"http://{host}:{port}" for host in hosts]


def offset(double: Emulator) -> float:
    found: float = http.get(f"{double.url}/_emulator/clock").json()["offset_s"]
    return found


def notify(double: Emulator, url: str, version: str) -> None:
    """Name a receiver for a new task."""
    told = {"url": url}
    part = {"text": "hi"} if version == "1.0" else {"kind": "text", "text": "hi"}
    role, method = ("ROLE_USER", "SendMessage") if version == "1.0" else ("user", "message/send")
    field = "taskPushNotificationConfig" if version == "1.0" else "pushNotificationConfig"
    params = {
        "message": {"messageId": "m", "role": role, "parts": [part]},
        "configuration": {field: told},
    }
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = http.post(double.url, json=asked, headers={"A2A-Version": version}).json()
    assert "result" in answer, answer


class Log(logging.Handler):
    """What a logger says, for whoever waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: queue.Queue[str] = queue.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.put(record.getMessage())

    def until(self, part: str) -> str:
        while part not in (line := self.lines.get(timeout=TIMEOUT_S)):
            pass
        return line


@pytest.fixture
def asked() -> Iterator[Log]:
    """What httpx asks."""
    log, logger = Log(), logging.getLogger("httpx")
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(log)
    yield log
    logger.removeHandler(log)
    logger.setLevel(before)


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_a_notification_does_not_steer_the_double(
    double: Emulator, asked: Log, version: str
) -> None:
    """Whoever may name a receiver would else have every session destroyed."""
    notify(double, f"{double.url}/_emulator/reset", version)

    assert "403" in asked.until("/_emulator/reset")
    assert http.get(f"{double.url}/_emulator/journal").json()["entries"]


def test_a_generated_tool_does_not_steer_the_double(double: Emulator) -> None:
    """Also where its definition has a header of the mark's name."""
    mark = {"name": "X-Agentdouble-On-Behalf", "in": "header", "type": "string"}
    operation = {"operationId": "reset", "parameters": [mark], "responses": {"200": {}}}
    document = {
        "swagger": "2.0",
        "info": {"title": "Own", "version": "1"},
        "paths": {"/_emulator/reset": {"post": {**operation, "responses": OK}}},
    }
    backend = OpenApiBackend.load(document, base_url=double.url)
    double.mcp.create("own", backend, key=KEY)
    called = {"name": "reset", "arguments": {"X-Agentdouble-On-Behalf": ""}}
    answer = ask(double, "own", mcp_wire.message("tools/call", called))

    assert "403" in answer
    assert http.get(f"{double.url}/_emulator/journal").json()["entries"]


OK = {"200": {"description": "done"}}


def ask(double: Emulator, service: str, message: dict[str, Any]) -> str:
    """Send a message to a service in a session of its own, and return the answer's text."""
    url = f"{double.url}/mcp/{service}"
    begun = http.post(url, json=mcp_wire.INITIALIZE, headers=mcp_wire.headers(KEY))
    session = begun.headers.get("mcp-session-id")
    return http.post(url, json=message, headers=mcp_wire.headers(KEY, session)).text


def test_a_service_does_not_steer_the_double(double: Emulator, names: list[str]) -> None:
    """It passes bodies on unread, by whatever name it finds this machine."""
    hop = {"Connection": "X-Agentdouble-On-Behalf"}  # nor can it be had taken off on the way
    for number, name in enumerate(names):
        service = f"back-{number}"
        double.mcp.create(service, McpBackend(f"{name}/_emulator/clock"), key=KEY)
        for method in ("POST", "GET", "DELETE"):
            http.request(
                method,
                f"{double.url}/mcp/{service}",
                json=ADVANCE,
                headers={**mcp_wire.headers(KEY), **hop},
            )

    assert 0.0 == offset(double)


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "Connection", "HOST"])
def test_no_header_of_a_backend_can_hide_a_second_request(name: str) -> None:
    """One that does not fit the body would have the rest of it read as a request of its own."""
    with pytest.raises(BackendError, match=name):
        McpBackend("http://127.0.0.1:1/mcp", {name: "1"})


def test_keys_of_an_issuer_are_not_fetched_from_the_double(double: Emulator) -> None:
    """It is asked when the first token comes, whoever has brought that."""
    with pytest.raises(IssuerError, match="status 403"):
        asyncio.run(issuers.Issuer(f"{double.url}/_emulator/health").keys(None))


def test_run_code_does_not_steer_the_double(double: Emulator) -> None:
    """A tool context may be made of what a caller has sent."""
    state = {
        "PLATFORM_TOOL_HOST": f"{urlsplit(double.url).netloc}/_emulator/reset#",
        "PLATFORM_TOOL_SCHEME": "http",
        "PLATFORM_TOOL_ID": "t-sandbox",
        "PLATFORM_ACCESS_KEY": "a",
        "PLATFORM_SECRET_KEY": "s",
    }
    http.get(f"{double.url}/ping")
    with pytest.raises(EnvelopeError, match="HTTP 403"):
        run_code("1", tool_context=state)

    assert http.get(f"{double.url}/_emulator/journal").json()["entries"]


def test_a_caller_may_say_so_itself(double: Emulator) -> None:
    """A double on this machine that asks another one is refused as by itself, with a key, too."""
    marked = {"X-Agentdouble-On-Behalf": "1"}
    with Emulator(api_key=KEY) as keyed:
        keyed_too = http.get(f"{keyed.url}/_emulator/health", headers={**marked, "X-Api-Key": KEY})
    answer = http.get(f"{double.url}/_emulator/health", headers=marked)

    assert (403, 403) == (answer.status_code, keyed_too.status_code)
    assert "on somebody's behalf" in answer.json()["error"]["message"]


def test_whoever_asks_for_somebody_marks_it() -> None:
    """A client of httpx that the double makes by itself would make requests without the mark."""
    root = Path(openapi.__file__).parents[2]
    makes = ("httpx.Client(", " AsyncClient(", "httpx.request(", "httpx.get(", "httpx.post(")
    makes += ("httpx.AsyncClient(", "unmocked_http.Client(", "unmocked_http.AsyncClient(")
    found = [
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if "cli" not in path.parts and any(one in path.read_text() for one in makes)
    ]

    assert [
        "code_tool.py",
        "on_behalf.py",
        "runtimes/handle.py",
        "sandbox/workbench/client.py",
        "what_if/sending.py",  # its client is one that no mock sees; it sends the mark itself
    ] == sorted(found)
