"""A second double on the same database takes over when the first has lost it."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from agentdouble.core.invoke_tool import RunCode, ToolAddress, build
from agentdouble.core.signing import Credentials
from tests.agentdouble.calling import TOKEN, eventually, http, send
from tests.agentdouble.cli.conftest import PATIENCE_S, command
from tests.agentdouble.state.test_postgresql import BACKENDS, sql
from tests.ports import reserved
from tests.postgresql import Server

pytestmark = pytest.mark.slow

HOLDER = "(SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted)"


class Doubles:
    """Doubles that serve one database from the command line, each at its own port."""

    def __init__(self, server: Server, folder: Path, stack: ExitStack) -> None:
        self._server, self._folder, self._stack = server, folder, stack
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *options: str) -> str:
        """Start a double and return its address, when it answers."""
        url = f"http://127.0.0.1:{self._stack.enter_context(reserved())}"
        words = ("serve", "--no-console", "--port", url.rpartition(":")[2], *options)
        environment = {**os.environ, "AGENTDOUBLE_TOKEN": TOKEN, "AGENTDOUBLE_POOL_SIZE": "0"}
        self.processes[url] = subprocess.Popen(
            command([*words, "--state", self._server.url]),
            env={**environment, "XDG_STATE_HOME": str(self._folder)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        eventually(lambda: self.status(url), bool)
        return url

    def status(self, url: str) -> str | None:
        """Return what a double says of its health, or None if it does not answer."""
        assert self.processes[url].poll() is None
        try:
            return str(http.get(f"{url}/_emulator/health").json()["status"])
        except httpx.TransportError:
            return None

    def reason(self, url: str) -> str:
        """Return why a standby has not taken over yet."""
        return str(http.get(f"{url}/_emulator/health").json()["reason"])

    def run(self, url: str, code: str) -> httpx.Response:
        """Run code in a session; all doubles have the key pair of the same user."""
        keys = json.loads((self._folder / "agentdouble" / "credentials.json").read_text())
        address = ToolAddress(url, Credentials(keys["access_key"], keys["secret_key"]))
        body = RunCode("t-sandbox", "s1", code).body()
        return send(build(body, address, dt.datetime.now(dt.timezone.utc)))

    def end(self, url: str, number: signal.Signals) -> int:
        """Send a double a signal, and return its exit code."""
        process = self.processes.pop(url)
        process.send_signal(number)
        return process.wait(PATIENCE_S)

    def end_all(self) -> None:
        for url in [*self.processes]:
            self.end(url, signal.SIGKILL)


@pytest.fixture
def doubles(server: Server, tmp_path: Path) -> Iterator[Doubles]:
    with ExitStack() as stack:
        doubles = Doubles(server, tmp_path, stack)
        stack.callback(doubles.end_all)
        yield doubles


def create(url: str, session: str) -> int:
    sessions = f"{url}/apps/coder/users/u/sessions"
    status: int = http.post(f"{sessions}/{session}", json={}).status_code
    return status


def created(url: str) -> set[str]:
    return {session["id"] for session in http.get(f"{url}/apps/coder/users/u/sessions").json()}


def test_a_standby_takes_over_from_a_double_that_is_killed(doubles: Doubles) -> None:
    """It has the records, and says of the sandbox's sessions that they have ended."""
    first = doubles.start()
    standby = doubles.start("--standby")
    assert 200 == create(first, "kept")
    assert 200 == doubles.run(first, "print(6 * 7)").status_code
    refused = [doubles.run(standby, "1"), http.get(f"{standby}/_emulator/sessions")]
    doubles.end(first, signal.SIGKILL)
    eventually(lambda: doubles.status(standby), lambda status: status == "ok")
    sessions = http.get(f"{standby}/_emulator/sessions").json()

    assert [(503, True)] * 2 == [
        (answer.status_code, "is a standby" in answer.text) for answer in refused
    ]
    assert {"kept"} == created(standby)
    assert ([], ["the double was restarted"]) == (
        sessions["sessions"],
        [session["reason"] for session in sessions["ended"]],
    )
    assert 200 == create(standby, "new")


def test_one_of_two_standbys_takes_over(doubles: Doubles) -> None:
    """The other one waits for its turn."""
    first = doubles.start()
    standbys = [doubles.start("--standby"), doubles.start("--standby")]
    assert ["standby"] * 2 == [doubles.status(url) for url in standbys]
    reason = eventually(lambda: doubles.reason(standbys[0]), lambda text: "waits" not in text)
    assert 200 == create(first, "kept")
    doubles.end(first, signal.SIGTERM)
    states = eventually(
        lambda: [doubles.status(url) for url in standbys], lambda states: "ok" in states
    )
    second, third = standbys if states[0] == "ok" else reversed(standbys)

    assert reason.endswith("Another double uses it.")
    assert ["ok", "standby"] == [doubles.status(url) for url in (second, third)]
    assert 200 == create(second, "of the second")
    doubles.end(second, signal.SIGKILL)
    eventually(lambda: doubles.status(third), lambda status: status == "ok")
    assert {"kept", "of the second"} == created(third)


def test_a_double_that_was_replaced_ends(doubles: Doubles, server: Server) -> None:
    """Its connection was lost; it writes nothing over the records of the other one."""
    first = doubles.start()
    standby = doubles.start("--standby")
    sql(server.url, f"SELECT pg_terminate_backend(pid) {BACKENDS} AND pid IN {HOLDER}")
    process = doubles.processes.pop(first)

    eventually(lambda: doubles.status(standby), lambda status: status == "ok")
    assert 0 == process.wait(PATIENCE_S)
    assert 200 == create(standby, "new")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_standby_is_stopped_like_a_double(doubles: Doubles, number: signal.Signals) -> None:
    first = doubles.start()
    standby = doubles.start("--standby")

    assert 0 == doubles.end(standby, number)
    assert "ok" == doubles.status(first)
