"""``agentdouble faults``, ``journal`` and ``clock`` on a double in this process."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from agentdouble import Emulator
from agentdouble.cli import connections, journal
from agentdouble.cli.control import ControlPlaneClient
from tests.agentdouble.calling import background, http, run, text
from tests.agentdouble.cli.conftest import PATIENCE_S, CommandLine


@pytest.fixture
def shell(command_line: CommandLine, double: Emulator) -> CommandLine:
    """A command line with the double's keys."""
    command_line.environment.update(double.environment())
    return command_line


def output(shell: CommandLine, double: Emulator, *words: str) -> str:
    """Run a command that succeeds, and return its output."""
    done = shell.run(*words, "--url", double.url)
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


def read(shell: CommandLine, double: Emulator, *words: str) -> list[dict[str, Any]]:
    lines = output(shell, double, "journal", *words, "--json").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.slow
def test_requests_are_listed(shell: CommandLine, double: Emulator) -> None:
    """One line each: an action by its name, other requests by their address."""
    http.get(f"{double.url}/%1B%5B31m?a=b")
    text(double, "1")

    first, second = output(shell, double, "journal").splitlines()

    assert re.fullmatch(r"[\d:.]{12} #\d+ GET /\\x1b\[31m\?a=b 404 \d+ ms.*", first), first
    assert re.fullmatch(r"[\d:.]{12} #\d+ InvokeTool 200 \d+ ms, s-\w{20}, \d+ unknowns", second), (
        second
    )
    assert "\x1b" not in first + second


def test_json_is_the_route_s_answer(shell: CommandLine, double: Emulator) -> None:
    """The filters are the route's own, and the newest entries are shown."""
    for _ in range(3):
        http.get(f"{double.url}/ping")
    http.get(f"{double.url}/nowhere")
    route = http.get(f"{double.url}/_emulator/journal").json()["entries"]

    assert route == read(shell, double)
    assert route[-2:] == read(shell, double, "--tail", "2")
    assert [] == read(shell, double, "--tail", "0")
    assert route[3:] == read(shell, double, "--status", "404", "--method", "get")


def test_requests_are_followed(shell: CommandLine, double: Emulator) -> None:
    """Each is printed once, with the list's filters, until Ctrl-C."""
    http.get(f"{double.url}/ping")
    words = ("journal", "--url", double.url, "-f", "--json", "--action", "InvokeTool")
    following = shell.start(*words)
    assert following.stdout is not None
    text(double, "1")
    first = json.loads(following.stdout.readline())
    run(double, "2")
    http.get(f"{double.url}/ping")
    second = json.loads(following.stdout.readline())
    following.send_signal(signal.SIGINT)
    rest, errors = following.communicate(timeout=PATIENCE_S)

    route = http.get(f"{double.url}/_emulator/journal", params={"action": "InvokeTool"}).json()
    assert route["entries"] == [first, second]
    assert (0, "", "") == (following.returncode, rest, errors)


class SlowControlPlane(ControlPlaneClient):
    """A control plane that makes a request before it reads the list, and one after it."""

    def __init__(self, double: Emulator) -> None:
        super().__init__(connections.connection_at(double.url))
        self._double = double

    def admin(self, path: str, query: Mapping[str, str], **options: Any) -> httpx.Response:
        run(self._double, "1")
        answer = super().admin(path, query, **options)
        run(self._double, "2")
        return answer


def test_a_request_answered_while_the_list_is_read_is_followed_once(
    double: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event of the first one is still to come when the list has it already."""
    for name, value in double.environment().items():
        monkeypatch.setenv(name, value)
    subjects = []

    def note(entry: Mapping[str, Any]) -> None:
        subjects.append(entry["subject"])
        if entry["subject"] == "2":
            raise KeyboardInterrupt

    following = journal._follow(SlowControlPlane(double), {"action": "InvokeTool"}, 10, note)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(following)

    assert ["1", "2"] == subjects


def test_clock_is_shown_moved_and_stopped(shell: CommandLine, double: Emulator) -> None:
    """An expired session ends before the command does."""
    text(double, "1")
    before = output(shell, double, "clock", "show")
    assert "frozen" in output(shell, double, "clock", "freeze")
    moved = output(shell, double, "clock", "advance", "1h30m")
    unfrozen = json.loads(output(shell, double, "clock", "unfreeze", "--json"))

    assert re.fullmatch(r"\d{4}-\d\d-\d\d [\d:]{8} UTC\n", before)
    assert moved.endswith(" UTC, 1:30:00 ahead of the wall clock, frozen\n")
    assert (5400.0, False) == (unfrozen["offset_s"], unfrozen["frozen"])
    assert [] == http.get(f"{double.url}/_emulator/sessions").json()["sessions"]


@pytest.mark.parametrize("time", ["", "5", "1s5"])
def test_invalid_time_is_refused(shell: CommandLine, double: Emulator, time: str) -> None:
    """With examples, before any request."""
    done = shell.run("clock", "advance", "--url", double.url, "--", time)

    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("agentdouble: A duration looks like 90s, 30m, 2h or 1h30m, not ")


@pytest.fixture
def faults(shell: CommandLine, double: Emulator) -> Any:
    """Run a command on a double in this process; return its output or its error."""

    def run(*words: str) -> str:
        done = shell.run("faults", *words, "--url", double.url)
        assert (0, "") == (done.returncode, done.stderr) or (2, "", 1) == (
            done.returncode,
            done.stdout,
            done.stderr.count("\n"),
        )
        return done.stdout or done.stderr

    return run


def test_fault_is_armed_triggered_and_removed(double: Emulator, faults: Any) -> None:
    """By its fields; values are JSON or text."""
    fields = ("status=503", "nth=2", "message=not now", 'headers={"X-A": "1"}', "times=all")

    fault = faults("arm", "fail", "/ping", *fields)
    first, second = (http.get(f"{double.url}/ping") for _ in range(2))

    id_ = fault.partition(":")[0]
    assert fault.startswith(f"{id_}: fail /ping (nth=2, ")
    assert (200, 503) == (first.status_code, second.status_code)
    assert ("1", True) == (second.headers["x-a"], "not now" in second.text)
    assert f"{id_}  fail /ping (nth=2, " in faults("list")
    (listed,) = json.loads(faults("list", "--json"))["faults"]
    assert http.get(f"{double.url}/_emulator/faults").json()["faults"] == [listed]
    assert (2, 1) == (listed["calls"], listed["fired"])
    assert f"{id_} is removed; it has happened 1 times.\n" == faults("remove", id_)
    assert 200 == http.get(f"{double.url}/ping").status_code


def test_held_call_is_released(double: Emulator, faults: Any) -> None:
    """A delay without a time holds its call."""
    armed = json.loads(faults("arm", '{"kind": "delay", "operation": "/ping"}', "--json"))
    request = background(lambda: http.get(f"{double.url}/ping").status_code)
    double.faults.wait(armed["id"], fired=1)

    assert not request.done()
    assert f"The calls that {armed['id']} holds go on.\n" == faults("release", armed["id"])
    assert 200 == request.result()
    faults("arm", "reset", "/ping")
    assert "2 faults are removed.\n" == faults("remove", "--all")
    assert () == double.faults.states()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("arm", "fial", "/ping"), "Did you mean fail?"),
        (("arm", "fail", "/ping", "503"), "'503' is not NAME=VALUE."),
        (("arm", "delay", "/ping", "seconds=1e999"), "a value that is not JSON"),
        (("remove",), "Name a fault"),
        (("remove", "f99"), "There is no armed fault 'f99'"),
    ],
)
def test_errors_are_one_line(faults: Any, words: tuple[str, ...], says: str) -> None:
    """They say what to write instead."""
    assert says in faults(*words)
