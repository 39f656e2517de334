from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentdouble.core import running_doubles
from agentdouble.core.environment import DoubleConnection

HOLD = """
import sys
from agentdouble.core import running_doubles
from agentdouble.core.environment import DoubleConnection

with running_doubles.announced(DoubleConnection(sys.argv[1], "tool", "key", "secret", "region")):
    print(flush=True)
    sys.stdin.read()
"""
LIST = """
from agentdouble.core import running_doubles

print([double.url for double in running_doubles.doubles()])
"""
URL = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The records of this test alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "agentdouble"


@contextmanager
def announced(url: str = URL) -> Iterator[subprocess.Popen[str]]:
    """Announce a double in another process."""
    command = [sys.executable, "-c", HOLD, url]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        yield process


def listed(*prefix: str) -> str:
    command = [*prefix, sys.executable, "-c", LIST]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def unshare(*namespaces: str) -> tuple[str, ...]:
    """Return a command's start that runs it in new namespaces; skip where that is not allowed."""
    user = () if os.geteuid() == 0 else ("--user", "--map-current-user")
    prefix = ("unshare", *user, *namespaces)
    if shutil.which("unshare") is None or subprocess.run([*prefix, "true"], check=False).returncode:
        pytest.skip("needs unshare, and the right to make namespaces")
    return prefix


def test_a_command_in_another_process_namespace_finds_the_double() -> None:
    """Its process ids say nothing about the double."""
    with announced():
        assert [f"['{URL}']"] * 2 == [listed(*unshare("--pid", "--fork", "--mount-proc")), listed()]


def test_a_command_in_another_network_leaves_the_double_alone() -> None:
    """127.0.0.1 is another address there."""
    with announced():
        assert ["[]", f"['{URL}']"] == [listed(*unshare("--net")), listed()]


def test_a_killed_double_is_removed(directory: Path) -> None:
    with announced() as process:
        process.send_signal(signal.SIGKILL)
        process.wait()

        assert [] == running_doubles.doubles()
        assert [] == [*directory.iterdir()]


@pytest.mark.parametrize("changes", [{"machine": "other"}, {"network": "other"}])
def test_a_record_of_another_place_is_neither_used_nor_removed(
    directory: Path, changes: dict[str, str]
) -> None:
    """Not even if it has been left without a lock: its place may have none."""
    path = written(directory, locked=False, **changes)

    assert [] == running_doubles.doubles()
    assert path.exists()


def test_without_locks_a_double_is_known_by_its_port(directory: Path) -> None:
    """Some network file systems have none."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        path = written(directory, locked=False, connection={"url": url})
        assert [url] == [double.url for double in running_doubles.doubles()]

    assert [] == running_doubles.doubles()
    assert not path.exists()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"connection": {"url": 1}}', "\ufffd" * 9])
def test_a_file_that_is_no_record_is_ignored(directory: Path, content: str) -> None:
    directory.mkdir(mode=0o700)
    (directory / "listed-0.json").write_text(content, "utf-8")

    assert [] == running_doubles.doubles()


def test_doubles_that_start_at_once_have_one_key_pair() -> None:
    """The first one makes it, and the others wait for it."""
    code = "from agentdouble.core import running_doubles; print(running_doubles.credentials()[1])"
    command = [sys.executable, "-c", code]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    tokens = {process.communicate()[0] for process in started}

    assert 1 == len(tokens)
    assert "\n" != tokens.pop()


def written(directory: Path, connection: dict[str, str] | None = None, **changes: Any) -> Path:
    """Write a record by hand, without a lock."""
    with running_doubles.announced(DoubleConnection(URL, "tool", "key", "secret", "region")):
        (path,) = directory.glob("listed-*")
        record = json.loads(path.read_text("utf-8"))
    record |= changes
    record["connection"] |= connection or {}
    path.write_text(json.dumps(record), "utf-8")
    return path
