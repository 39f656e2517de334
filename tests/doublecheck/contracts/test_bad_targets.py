"""Targets that hang, break off or answer rubbish cause no failures and no long waits."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from doublecheck.client import preflight
from doublecheck.contracts.run_result import Run
from doublecheck.contracts.verdicts import Verdict
from doublecheck.reports.collector import Collector
from tests.doublecheck import bad_servers
from tests.doublecheck.bad_servers import answer

pytestmark = pytest.mark.once

CARRIED_OUT = {Verdict.PASSED, Verdict.FAILED, Verdict.ERROR, Verdict.COULD_NOT_ASK}


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
