"""Targets that hang, break off or answer rubbish cause no failures and no long waits."""

from __future__ import annotations

import asyncio
import functools
import itertools
import re
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest
from a2a.server.tasks import TaskUpdater

from agentdouble.core import environment
from doublecheck.client import preflight, transport
from doublecheck.client._sync.platform import Platform
from doublecheck.client.doubles import serving_double
from doublecheck.contracts.conftest import REFERENCE_AGENTS
from doublecheck.contracts.losses import Patience
from doublecheck.contracts.reference.agentdouble_apps import reference_apps
from doublecheck.contracts.reference.executor import Steps
from doublecheck.contracts.run_result import Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.errors import LostAnswersError, NoAnswerError
from doublecheck.reports.collector import Collector
from doublecheck.run import pytest_run
from doublecheck.target.target import Target
from tests.doublecheck import bad_servers
from tests.doublecheck.bad_servers import answer
from tests.mutants import campaign

CARRIED_OUT = {Verdict.PASSED, Verdict.FAILED, Verdict.ERROR, Verdict.COULD_NOT_ASK}
# One answer in so many is lost: some clauses need no more than a dozen requests, API-05 hundreds.
LIES = {
    "INV-04-wrap_twice": 7,
    "API-05-lose_the_first_event": 45,
    "MCP-03-round_large_integers": 15,
}
Check = Callable[[int, str], Run]


@pytest.fixture
def check(pytester: pytest.Pytester) -> Callable[..., Run]:
    """Run the checks of the API server against a live target."""

    def run(url: str, select: str = "API", of: str = "api_server") -> Run:
        collector = Collector()
        live = ("--platform-target=live", f"--platform-url={url}")
        module = ("--pyargs", f"doublecheck.contracts.test_{of}")
        ended = pytester.inline_run(*module, *live, "-k", select, plugins=[collector])
        return collector.run(int(ended.ret))

    return run


@pytest.mark.once
def test_a_hanging_target_makes_every_check_could_not_ask(
    check: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three requests before the first check decide it."""
    monkeypatch.setattr(preflight, "PATIENCE_S", 0.3)
    monkeypatch.setattr(preflight, "_MARGIN_S", 30)  # so that each is asked before it is given up
    with bad_servers.serving(bad_servers.hang) as server:
        run = check(server.url)
        accepted = len(server.accepted)

    assert {Verdict.COULD_NOT_ASK} == {check.verdict for check in run.checks} & CARRIED_OUT
    carried_out = [check for check in run.checks if check.verdict in CARRIED_OUT]
    assert all("did not finish its answer" in check.reason for check in carried_out)
    assert (True, 3) == (len(run.checks) > 15, accepted)


@pytest.mark.once
def test_a_target_that_stops_answering_is_not_blamed(check: Callable[..., Run]) -> None:
    """Neither the check that is waiting nor the later ones fail."""
    requests: list[str] = []

    def behave(connection: socket.socket) -> None:
        requests.append(connection.recv(65536).split(b" ", 2)[1].decode())
        if "/ping" in requests[:-1] and "/health" in requests:
            bad_servers.break_off(connection)
            return
        status = "404 Not Found" if "nobody" in requests[-1] else "200 OK"
        head = f"HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode() + b"ok")
        connection.shutdown(socket.SHUT_WR)

    with bad_servers.serving(behave) as server:
        run = check(server.url, "PRB-01 or PRB-02 or PRB-03", "probes")

    could_not = Verdict.COULD_NOT_ASK
    assert [("PRB-01", Verdict.PASSED), ("PRB-02", could_not), ("PRB-03", could_not)] == [
        (check.clause, check.verdict) for check in run.checks if check.verdict in CARRIED_OUT
    ], run.checks


@pytest.mark.once
@pytest.mark.parametrize(
    ("clause", "module"), [("API-01", "api_server"), ("API-15", "api_server"), ("A2A-01", "a2a")]
)
@pytest.mark.parametrize("body", [b"rubbish", b"\0\xffrubbish"])
def test_rubbish_answers_do_not_show_a_surface(
    check: Callable[..., Run], clause: str, module: str, body: bytes
) -> None:
    with bad_servers.serving(answer(body)) as server:
        run = check(server.url, clause, module)

    assert {Verdict.COULD_NOT_ASK} == {check.verdict for check in run.checks} & CARRIED_OUT
    assert any("answers HTTP 200 with something else" in check.reason for check in run.checks)


@pytest.mark.once
def test_a_held_stream_ends_its_check(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executor goes on sending what the check does not wait for, so that no read times out."""
    sending, do = threading.Event(), Steps.do

    async def hold(steps: Steps, context: Any, event_queue: Any) -> None:
        if "steps" not in str(context.message):
            await do(steps, context, event_queue)
            return
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        while True:
            await updater.start_work()
            sending.set()
            await asyncio.sleep(0.005)

    monkeypatch.setattr(Steps, "do", hold)
    monkeypatch.setattr(transport, "LONGEST_ANSWER_S", 0.3)
    collector = Collector()
    with serving_double(*reference_apps({"a2a"})) as target:
        of = ("--platform-target=live", f"--platform-url={target.url}")
        allowed = ("--platform-reference-app", "--platform-allow-writes")
        module = ("--pyargs", "doublecheck.contracts.test_a2a", "-k", "A2A-03")
        ended = pytester.inline_run(*module, *of, *allowed, plugins=[collector])

    reasons = [check.reason for check in collector.run(int(ended.ret)).checks if check.reason]
    assert sending.is_set()
    assert any("the answer has not ended within 0.3 s" in reason for reason in reasons), reasons


DELAY_S = 0.5
BAD_GATEWAY = (
    b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 24\r\n"
    b"Connection: close\r\n\r\n<h1>502 Bad Gateway</h1>"
)


class Proxy:
    """Forwards each request to a port; every ``period``-th one meets the next kind of loss."""

    def __init__(self, port: int, period: int) -> None:
        self._port = port
        self._period = period
        self._count = itertools.count(1)
        self._kinds = itertools.cycle(("reset", "delay", "502"))
        self.lost: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one request and close the connection."""
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._answer(reader, writer)
        finally:
            writer.close()

    async def _chunks(self, reader: asyncio.StreamReader) -> bytes:
        """Return a chunked body as it is."""
        body, size = b"", b"1"
        while int(size, 16):
            size = await reader.readline()
            body += size + await reader.readexactly(int(size, 16) + 2)
        return body

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        body = await reader.readexactly(int(length[1]) if length else 0)
        if re.search(rb"(?i)\r\ntransfer-encoding: *chunked", head):
            body = await self._chunks(reader)
        kind = "" if next(self._count) % self._period else next(self._kinds)
        if kind:
            self.lost.append(f"{kind} {head.partition(b' HTTP')[0].decode()}")
        if kind == "reset":
            writer.transport.abort()
            return
        if kind == "502":
            writer.write(BAD_GATEWAY)
        else:
            await asyncio.sleep(DELAY_S if kind == "delay" else 0)
            await self._forward(head, body, writer)
        await writer.drain()

    async def _forward(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        reader, upstream = await asyncio.open_connection("127.0.0.1", self._port)
        head = re.sub(rb"(?i)\r\nconnection:[^\r]*", b"", head)
        upstream.write(head[:-2] + b"Connection: close\r\n\r\n" + body)
        try:
            while chunk := await reader.read(65536):
                writer.write(chunk)
                await writer.drain()
        finally:
            upstream.close()


@contextmanager
def losing(port: int, period: int) -> Iterator[tuple[str, Proxy]]:
    """Yield the URL of a proxy in front of a port of this machine."""
    proxy, ready = Proxy(port, period), Future[tuple[int, Callable[[], object]]]()

    async def serve() -> None:
        stopped, loop = asyncio.Event(), asyncio.get_running_loop()
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
        stop = functools.partial(loop.call_soon_threadsafe, stopped.set)
        ready.set_result((server.sockets[0].getsockname()[1], stop))
        await stopped.wait()
        server.close()  # run() cancels the connections that are open

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    address, stop = ready.result()
    try:
        yield f"http://127.0.0.1:{address}", proxy
    finally:
        stop()
        thread.join()


@pytest.fixture
def check_losing(monkeypatch: pytest.MonkeyPatch) -> Check:
    """Check a double behind a proxy that loses every n-th answer."""

    def run(period: int, selected: str) -> Run:
        with serving_double(*reference_apps(), agents=REFERENCE_AGENTS) as target:
            credentials = target.address().credentials
            monkeypatch.setenv(environment.ACCESS_KEY, credentials.access_key)
            monkeypatch.setenv(environment.SECRET_KEY, credentials.secret_key)
            monkeypatch.setenv(environment.TOOL_ID, target.sandbox_tool())
            with losing(urlsplit(target.url).port or 0, period) as (url, proxy):
                live = ("--platform-target=live", f"--platform-url={url}")
                allowed = ("--platform-reference-app", "--platform-allow-writes")
                result = pytest_run.run(
                    [*live, *allowed, "-k", selected, *campaign.QUIET], verbose=False
                )
        assert proxy.lost
        return result

    return run


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize("period", [45, 15])
def test_a_compliant_platform_never_fails(check_losing: Check, period: int) -> None:
    run = check_losing(
        period, "INV or PRB or API-03 or API-09 or API-12 or MCP-03 or A2A-02 or SBX-05"
    )

    blamed = (Verdict.FAILED, Verdict.ERROR)
    assert {} == {check.name: check.reason for check in run.checks if check.verdict in blamed}
    passed = [verdict for verdict in run.verdicts().values() if verdict is Verdict.PASSED]
    assert len(passed) > len(run.verdicts()) / 2


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize("lie", LIES)
def test_a_lying_platform_never_passes(
    check_losing: Check, lie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (mutant,) = (mutant for mutant in campaign.mutants() if str(mutant) == lie)
    mutant.install(monkeypatch)

    run = check_losing(LIES[lie], mutant.clause)

    assert {Verdict.FAILED, Verdict.COULD_NOT_ASK} >= set(run.verdicts().values())


def reset_some(*numbers: int) -> bad_servers.Behaviour:
    """Reset the connections with these numbers, and answer the others."""
    count = itertools.count(1)

    def behave(connection: socket.socket) -> None:
        if not numbers or next(count) in numbers:
            bad_servers.reset(connection)
        else:
            bad_servers.answer(b"pong")(connection)

    return behave


def attempts_of(behave: bad_servers.Behaviour, method: str = "POST", times: int = 2) -> list[int]:
    """Send requests to a server with patience in each attempt; return the attempts' numbers."""
    attempts: list[int] = []

    def attempt(number: int) -> None:
        attempts.append(number)
        for _ in range(times):
            platform.request(method, "/ping")

    with bad_servers.serving(behave) as server:
        target = Target(server.url, kind="live")
        patience = Patience(target)
        with Platform(target, keep_connections=False) as platform:
            platform._connection.again = patience.again
            patience.repeat(attempt, (NoAnswerError,))
    return attempts


def test_a_check_is_repeated_after_a_lost_answer() -> None:
    assert [0, 1] == attempts_of(reset_some(2))
    assert [0] == attempts_of(reset_some(99))


def test_a_lost_get_is_sent_again_alone() -> None:
    assert [0] == attempts_of(reset_some(1, 2), "GET")


def test_many_lost_gets_are_not_sent_again() -> None:
    """A platform that breaks off every other answer does not pass."""
    with pytest.raises((NoAnswerError, LostAnswersError)):
        attempts_of(reset_some(*range(1, 999, 2)), "GET", times=8)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_platform_that_never_answers_a_request_is_not_asked_again(method: str) -> None:
    with pytest.raises(NoAnswerError):
        attempts_of(reset_some(), method)


def test_what_fails_without_a_lost_answer_is_not_repeated() -> None:
    attempts: list[int] = []

    def attempt(number: int) -> None:
        attempts.append(number)
        raise AssertionError("wrong")

    with pytest.raises(AssertionError):
        Patience(Target("http://127.0.0.1:1", kind="live")).repeat(attempt, (AssertionError,))

    assert [0] == attempts
