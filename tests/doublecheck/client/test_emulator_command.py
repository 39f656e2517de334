"""A double of another interpreter is started, waited for, and ended whatever happens."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from doublecheck.client.emulator_command import started
from doublecheck.errors import EmulatorCommandError, UnreachableError

PATIENCE_S = 60


def python(code: str) -> list[str]:
    return [sys.executable, "-u", "-I", "-S", "-c", code]


def refuse(url: str) -> bool:
    raise UnreachableError(url, "refused")


ANNOUNCED = "import os, time; print(os.getpid(), 'is at http://0.0.0.0:1/ping'); time.sleep(600)"


@pytest.mark.slow
def test_tests_use_the_double_that_a_command_starts(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With its keys; it is another process, which is gone when the tests are."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    command = shlex.join([sys.executable, "-m", "agentdouble", "serve", "--port", "0"])
    pytester.makeini(f"[pytest]\nplatform_emulator_command = {command}")
    pytester.makepyfile(
        """
        import pathlib, psutil
        from agentdouble import running

        def test_it(platform, platform_server):
            [server] = [one.pid for one in psutil.net_connections() if one.status == "LISTEN"
                        and platform.url.endswith(f":{one.laddr.port}")][:1]
            pathlib.Path("server").write_text(str(server))
            assert platform_server.credentials is not None
            assert platform.list_apps()
            assert "double" == platform_server.name
            assert [] == running.doubles()  # so no command in another terminal means it
        """
    )

    result = pytester.runpytest_inprocess()

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["platform: double that a command starts (platform_emulator_*"])
    server = int((pytester.path / "server").read_text())
    assert server != psutil.Process().pid
    assert not psutil.pid_exists(server)


def test_the_address_is_read_from_what_it_prints() -> None:
    """One of this machine: others may be about anything."""
    code = f"print('see https://docs.example.com'); {ANNOUNCED}"
    asked = []

    with started(python(code), lambda url: asked.append(url) is None) as url:
        assert "http://127.0.0.1:1" == url

    assert ["http://127.0.0.1:1"] == asked


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "patience_s", "told"),
    [
        (["/no/such/command", "--api-key", "SECRET_KEY"], PATIENCE_S, r"--api-key '\*\*\*'"),
        (["/no/such/command"], PATIENCE_S, r"ended with exit code 1 .*\n  /no/such/command: No"),
        (python("import sys; sys.exit('too bad')"), PATIENCE_S, r"exit code 1 .*\n  too bad"),
        (python("print('SECRET' + '_KEY=x')"), PATIENCE_S, r"exit code 0 before .*: nothing\."),
        (
            python(ANNOUNCED.replace("600", "0")),
            PATIENCE_S,
            r"0\.0\.1:1 and ended with exit code 0",
        ),
        (python("import time; time.sleep(600)"), 0.1, "did not print an address of this machine"),
        (python(ANNOUNCED), 0.5, "in time"),
    ],
)
def test_a_command_that_starts_no_double_is_an_error(
    command: list[str], patience_s: float, told: str
) -> None:
    """It tells what was waited for, and what the command printed, without secrets."""
    with (
        pytest.raises(EmulatorCommandError, match=f"(?s){told}") as error,
        started(command, refuse, patience_s),
    ):
        pass

    assert tuple(command) == error.value.command
    assert "SECRET_KEY" not in str(error.value)


@pytest.mark.slow
def test_it_ends_with_all_that_it_has_started() -> None:
    """Also what does not listen to the signal that asks for it."""
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    code = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {stubborn!r}])
print(child.pid, "http://127.0.0.1:1", flush=True)
time.sleep(600)
"""
    before = set(psutil.Process().children())
    with started(python(code), lambda _: True):
        (guard,) = set(psutil.Process().children()) - before
        children = [guard, *guard.children(recursive=True)]

    assert 3 == len(children)
    assert [] == psutil.wait_procs(children, timeout=PATIENCE_S)[1]


@pytest.mark.slow
def test_it_ends_when_we_are_killed() -> None:
    """Nobody is left to end it then, but its guard."""
    code = f"""
import time
from doublecheck.client.emulator_command import started
with started({python(ANNOUNCED)!r}, lambda url: True):
    print("started", flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as harness:
        assert harness.stdout is not None
        assert b"started\n" == harness.stdout.readline()
        children = psutil.Process(harness.pid).children(recursive=True)
        harness.kill()

    assert 2 == len(children)
    assert [] == psutil.wait_procs(children, timeout=PATIENCE_S)[1]
