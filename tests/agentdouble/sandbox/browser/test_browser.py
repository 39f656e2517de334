"""How a session's browser process starts, is confined and ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from websockets.exceptions import ConnectionClosed

from agentdouble import Emulator
from agentdouble.processes import isolation
from agentdouble.sandbox.browser import chromium
from tests.agentdouble.calling import (
    DataPlane,
    act,
    act_on_session,
    data_plane,
    has_gone,
    pid_of,
    text,
)
from tests.agentdouble.sandbox.browser.browsing import client_of, processes_of, session_of

pytestmark = pytest.mark.once

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds sessions apart")
MISSING = "is not installed. Install it: "


@pytest.fixture(params=["auto", "local-provisioner"])
def double(chromium_path: str, request: pytest.FixtureRequest) -> Iterator[Emulator]:
    """A double with a fork server, and one without."""
    with Emulator(pool_size=0, max_browsers=1, provisioner=request.param) as double:
        yield double


def message(plane: DataPlane, path: str = "/v1/browser/info") -> tuple[int, str]:
    answer = plane.get(path)
    return answer.status_code, answer.json()["message"]


def started(plane: DataPlane) -> None:
    answer = plane.get("/v1/browser/screenshot")
    assert 200 == answer.status_code, answer.text


def test_deleting_a_session_removes_its_browser(double: Emulator) -> None:
    """Every process and file is gone before the deletion is answered."""
    plane = data_plane(double, "s")
    started(plane)
    processes = processes_of(double, plane)
    home = session_of(double, plane).processes.home
    assert home is not None
    assert [True] == [profile.is_dir() for profile in home.parent.glob("run/*/profile")]

    act(double, "DeleteSession", SessionId=plane.query["faasInstanceName"])

    assert len(processes) > 3
    assert [] == [process for process in processes if process.is_running()]
    assert not home.parent.exists()


def test_a_dead_browser_is_replaced_on_the_next_call(double: Emulator) -> None:
    """Its clients are disconnected, and the session survives."""
    plane = data_plane(double, "s")
    started(plane)
    old = processes_of(double, plane)
    with client_of(plane) as client:
        client.call("Browser.getVersion")
        # its helpers have a type
        browser = next(child for child in old[1:] if "--type=" not in " ".join(child.cmdline()))
        browser.kill()
        assert has_gone(browser.pid, timeout_s=30)  # what it is sent from now on is lost
        with pytest.raises(ConnectionClosed):
            client.call("Browser.getVersion")
    started(plane)

    assert old[0].pid != processes_of(double, plane)[0].pid
    assert "1\n" == text(double, "print(1)", "s")
    assert [] == [process for process in old if process.is_running()]


def test_max_browsers_limits_running_browsers(double: Emulator) -> None:
    """Another session is refused until one ends."""
    first, second = data_plane(double, "first"), data_plane(double, "second")
    started(first)

    refused = message(second)
    act(double, "DeleteSession", SessionId=first.query["faasInstanceName"])
    started(second)

    reason = (
        "1 browsers run and the setting max_browsers allows no more. "
        "Destroy a session that has one, or raise the setting."
    )
    assert (429, reason) == refused


def test_a_browser_listens_on_no_port(double: Emulator) -> None:
    """Clients can reach it only with the session's token."""
    plane = data_plane(double, "s")
    started(plane)

    listening = [
        connection
        for process in processes_of(double, plane)
        for connection in _connections(process)
        if connection.status == psutil.CONN_LISTEN
    ]

    assert [] == listening


def _connections(process: psutil.Process) -> list[Any]:
    with suppress(psutil.NoSuchProcess):  # a helper that has done its work
        return list(process.net_connections("inet"))
    return []


@LINUX
def test_a_browser_is_confined_like_the_session(browsing: Emulator) -> None:
    """It has the same user and view of files, and sandboxes its pages."""
    plane = data_plane(browsing, "held")
    started(plane)
    kernel = psutil.Process(pid_of(browsing, session="held"))
    processes = processes_of(browsing, plane)
    browser = processes[1]

    assert {kernel.uids().real} == {uid for process in processes for uid in _users(process)}
    if isolation.find_out().offers("files"):
        root = Path(f"/proc/{browser.pid}/root")
        text(browsing, "open('/home/gem/mark', 'w')", "held")
        assert ["gem"] == [entry.name for entry in (root / "home").iterdir()]
        assert (root / "home/gem/mark").exists()
        # an ordinary user sees the /proc of the host, read-only: no namespaces inside his own
        assert (os.geteuid() != 0) == ("--no-sandbox" in browser.cmdline())


def _users(process: psutil.Process) -> list[int]:
    with suppress(psutil.NoSuchProcess):  # as above
        return [process.uids().real]
    return []


@pytest.mark.slow
@LINUX
@pytest.mark.parametrize(
    ("script", "status", "reason"),
    [
        ("echo 'no such display' >&2; exit 3", 502, "it ended with exit code 3. no such display"),
        ("kill -9 $$", 502, "it was killed by signal 9"),
        ("exec sleep 600", 502, "it gave no answer for 0.5 s"),
    ],
)
def test_a_browser_that_fails_to_start_reports_why(
    tmp_path: Path, script: str, status: int, reason: str
) -> None:
    """It leaves no processes, and the session survives."""
    browser = executable(tmp_path, script)
    patience = 0.5 if "sleep" in script else 30
    with Emulator(pool_size=0, browser=str(browser), start_timeout_s=patience) as double:
        plane = data_plane(double, "s")
        error = message(plane)
        again = message(plane, "/v1/browser/screenshot")
        alive = text(double, "print('alive')", "s")
        remaining = [process for process in psutil.process_iter() if _runs(process, browser)]

    full = f"The session's browser has ended: {reason}. The next call starts another."
    assert [(status, full)] * 2 == [error, again]
    assert "alive\n" == alive
    assert [] == remaining


def executable(directory: Path, script: str) -> Path:
    for above in (directory, directory.parent, directory.parent.parent):
        above.chmod(0o755)  # sessions are users of their own
    path = directory / "browser"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def _runs(process: psutil.Process, browser: Path) -> bool:
    try:
        return str(browser) in process.cmdline()
    except psutil.Error:
        return False


def test_a_missing_browser_error_names_the_install_command() -> None:
    """Every route reports it, and nothing is started."""
    with Emulator(pool_size=0, browser="no-such-browser") as double:
        plane = data_plane(double, "s")
        messages = {message(plane, f"/v1/browser/{path}") for path in ("info", "screenshot")}

    assert {(503, f"no-such-browser {MISSING}{chromium.INSTALL}")} == messages


def test_a_paused_session_refuses_browser_calls(browsing: Emulator) -> None:
    """They answer 409 until it is resumed."""
    plane = data_plane(browsing, "paused")
    session = plane.query["faasInstanceName"]
    act_on_session(browsing, "PauseSession", session)
    paused = plane.get("/v1/browser/info").status_code
    act_on_session(browsing, "ResumeSession", session)

    assert (409, 200) == (paused, plane.get("/v1/browser/info").status_code)


@pytest.mark.skipif(os.geteuid() == 0, reason="root's browsers are those of sessions' users")
def test_a_browser_runs_as_the_ordinary_user(browsing: Emulator) -> None:
    """It needs no root, and uses a user namespace if available."""
    plane = data_plane(browsing, "ordinary")
    started(plane)

    assert os.geteuid() == processes_of(browsing, plane)[0].uids().real
