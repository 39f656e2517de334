from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from agentdouble import Emulator, SimpleApp
from agentdouble.core import environment, running_doubles
from doublecheck import Platform, Secret, Target, connect, connect_async
from doublecheck.client.doubles import answers_as_double, running_double, start_double
from doublecheck.errors import NoAnswerError, RefusedError, TargetError, UnreachableError

_UNCLOSED = """
import doublecheck

platform = doublecheck.connect()
platform.run_code("1")
print(*platform.sandboxes()[0].pids)
"""


def test_connect_without_a_url_starts_a_double() -> None:
    """It stops when the platform is closed; closing twice is harmless."""
    with connect() as platform:
        assert ("double", "pong!") == (platform.target.kind, platform.ping())
    platform.close()

    # another server may have taken the port meanwhile
    with Platform(platform.target) as closed, pytest.raises((UnreachableError, NoAnswerError)):
        closed.ping()


@pytest.mark.slow
def test_a_double_ends_with_its_interpreter() -> None:
    """An unclosed one leaves no processes and no warnings."""
    command = [sys.executable, "-W", "error", "-c", _UNCLOSED]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)

    pids = [int(pid) for pid in ended.stdout.split()]
    assert ([False], "") == ([psutil.pid_exists(pid) for pid in pids], ended.stderr)


def test_connect_and_connect_async_have_the_same_parameters() -> None:
    sync_signature, other = inspect.signature(connect), inspect.signature(connect_async)

    assert sync_signature.parameters == other.parameters


def test_cancelling_connect_async_stops_the_double(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller has no platform to close."""
    starting, go_on, started = threading.Event(), threading.Event(), []

    def start(*apps: Any) -> Emulator:
        starting.set()
        go_on.wait()
        started.append(start_double(*apps))
        return started[0]

    async def interrupted() -> None:
        connecting = asyncio.ensure_future(connect_async())
        await asyncio.to_thread(starting.wait)
        connecting.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await connecting

    monkeypatch.setattr("doublecheck.client.open_target.start_double", start)
    asyncio.run(interrupted())

    (double,) = started
    with Platform(Target.of(double)) as closed, pytest.raises(UnreachableError):
        closed.ping()


def test_connect_accepts_a_double_of_this_process() -> None:
    """It has its keys, and closing the platform does not stop it."""
    with Emulator() as double:
        with connect(double) as platform:
            assert ("double", double.credentials) == (
                platform.target.kind,
                platform.target.credentials,
            )
            assert platform.target.admin
        with connect(double) as platform:
            assert "pong!" == platform.ping()


def test_the_url_of_a_double_is_recognised(platform_server: Target) -> None:
    """Its clock is available; keys come from arguments or the environment."""
    with connect(platform_server.url, tool_id="t-1", access_key="AK", secret_key="SK") as client:
        assert ("double", "t-1") == (client.target.kind, client.target.tool_id)
        client.clock.now()


def test_a_project_target_is_found_by_name(
    platform_server: Target, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Arguments override its table."""
    (tmp_path / "pyproject.toml").write_text(
        f"[tool.doublecheck.targets.mine]\nkind = 'double'\nurl = '{platform_server.url}'"
    )
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")

    with connect(target="mine", region="r") as client:
        assert ("mine", "double", "r") == (
            client.target.name,
            client.target.kind,
            client.target.region,
        )
        assert "pong!" == client.ping()
    with pytest.raises(TargetError, match=r"Unknown target 'mime'.* Did you mean mine"):
        connect(target="mime")
    with pytest.raises(TargetError, match="must come from the environment"):
        connect(target="mine", api_key="k")


def test_the_environment_names_a_platform(
    platform_server: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The PLATFORM_ variables that a double prints are enough to run code in it."""
    for name, value in platform_server.environment().items():
        monkeypatch.setenv(name, value)

    with connect() as client:
        elsewhere = platform_server.offered - {"library"}
        assert replace(platform_server, offered=elsewhere, offers_assumed=True) == client.target
        assert "42" == client.run_code("6 * 7", session_id="environment").text


def test_a_local_server_that_is_not_a_double_is_live(
    platform_server: Target,
) -> None:
    with connect(f"{platform_server.url}/runtimes/nobody") as client:
        assert "live" == client.target.kind


def test_a_dead_local_address_is_an_error_at_once() -> None:
    with pytest.raises(UnreachableError, match=r"http://127\.0\.0\.1:1 "):
        connect("http://127.0.0.1:1")


def test_a_double_with_an_api_key_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key comes from the argument or from DOUBLECHECK_API_KEY."""
    with Emulator(api_key="k") as double:
        assert Secret("k") == Target.of(double).api_key
        assert answers_as_double(double.url)
        with connect(double.url) as locked, connect(double.url, api_key="k") as opened:
            answers = [client.request("GET", "/ping").status_code for client in (locked, opened)]
            with pytest.raises(RefusedError, match="set DOUBLECHECK_API_KEY, or pass api_key to"):
                locked.ping()
        monkeypatch.setenv("DOUBLECHECK_API_KEY", "k")
        with connect(double.url) as platform:
            answers.append(platform.request("GET", "/ping").status_code)

    assert [401, 200, 200] == answers


def test_a_live_platform_is_never_taken_for_a_running_double(platform_server: Target) -> None:
    """The error says how to use a live one."""
    with pytest.raises(TargetError, match="To use a live platform"):
        running_double(f"{platform_server.url}/runtimes/nobody")


def test_keys_of_a_served_double_are_found(
    platform_server: Target, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They come from the double's state file and override keys in the environment."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("PLATFORM_ACCESS_KEY", "another")
    monkeypatch.setenv("PLATFORM_SECRET_KEY", "another")
    address = platform_server.address()
    announced = environment.DoubleConnection(
        url=platform_server.url,
        tool_id=platform_server.sandbox_tool(),
        access_key=address.credentials.access_key,
        secret_key=address.credentials.secret_key,
        region=address.region,
    )

    with running_doubles.announced(announced), connect(platform_server.url) as platform:
        assert "42\n" == platform.run_code("print(6 * 7)").stdout


@pytest.mark.slow
def test_an_https_double_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its variables name the certificate to trust; without them connecting fails."""
    with Emulator(tls=True) as double:
        for url in (double.url, double.url.replace("https", "HTTPS")):
            with pytest.raises(UnreachableError, match="certificate"):
                connect(url)
        for name, value in double.environment().items():
            monkeypatch.setenv(name, value)
        with connect(double.url) as client:
            assert ("double", "42") == (client.target.kind, client.run_code("6 * 7").text)


def test_an_unreadable_ca_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error names the file and the variable."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "gone.pem"))

    with pytest.raises(TargetError, match=r"gone\.pem.*SSL_CERT_FILE"):
        connect("https://127.0.0.1:1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"apps": SimpleApp()}, r"apps must be a list: connect\(apps=\[app\]\)"),
        ({"apps": "module:app"}, r"apps must be a list: connect\(apps=\[app\]\)"),
        ({"apps": [SimpleApp()], "url": "http://127.0.0.1:1"}, "remove url and target, or apps"),
    ],
)
def test_invalid_apps_are_refused(options: dict[str, Any], message: str) -> None:
    """They must be a list and exclude a URL."""
    with pytest.raises(TargetError, match=message):
        connect(**options)
