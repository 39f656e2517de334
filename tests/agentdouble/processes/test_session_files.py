"""Reading session files while session code swaps directories for links."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("only Linux copies sessions", allow_module_level=True)

from agentdouble.processes import usage
from agentdouble.processes.session_files import copy_content, read_end

MIB = 1 << 20
SWAP = """
import ctypes
libc, exchange = ctypes.CDLL(None), 2
print("swapping", flush=True)
while True:
    libc.renameat2(-100, b"directory", -100, b"link", exchange)
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Path]:
    """A directory in which a process swaps a directory and a link to host files."""
    host, session = tmp_path / "host", tmp_path / "session"
    (session / "directory").mkdir(parents=True)
    (session / "directory/mine").write_text("mine")
    host.mkdir()
    (host / "secret").write_bytes(b"s" * MIB)
    (session / "link").symlink_to(host)
    with subprocess.Popen(
        [sys.executable, "-c", SWAP], cwd=session, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield session
        process.kill()


def test_copying_follows_no_link_to_host_files(session: Path, tmp_path: Path) -> None:
    for number in range(200):
        target = tmp_path / f"copy{number}"
        target.mkdir()
        copy_content(session, target)
        assert {path.name for path in target.rglob("*")} <= {"directory", "link", "mine"}


def test_counting_follows_no_link_to_host_files(session: Path) -> None:
    for _ in range(200):
        assert usage.files([str(session)], (), 1 << 40) < MIB


def test_a_copy_has_all_kinds_of_files(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "below/deep").mkdir(parents=True)
    target.mkdir()
    (source / "below/text").write_text("text")
    os.utime(source / "below/text", ns=(1, 2_000_000_003))
    (source / "below/text").chmod(0o640)
    os.link(source / "below/text", source / "second name")
    (source / "dangling").symlink_to("nowhere")
    os.mkfifo(source / "fifo")
    with (source / "sparse").open("wb") as file:
        file.seek(64 * MIB)
        file.write(b"end")
        file.truncate(65 * MIB)
    (source / "below").chmod(0o750)

    copy_content(source, target)

    text = target / "below/text"
    assert ("text", 0o640, 2_000_000_003) == (
        text.read_text(),
        stat.S_IMODE(text.stat().st_mode),
        text.stat().st_mtime_ns,
    )
    assert text.samefile(target / "second name")
    assert "nowhere" == str((target / "dangling").readlink())
    assert (target / "fifo").is_fifo()
    assert (source / "sparse").read_bytes() == (target / "sparse").read_bytes()
    assert (target / "sparse").stat().st_blocks * 512 < MIB
    assert 0o750 == stat.S_IMODE((target / "below").stat().st_mode)
    assert (source / "below").stat().st_mtime_ns == (target / "below").stat().st_mtime_ns


def test_only_the_end_of_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("begin, end")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "fifo")

    assert b"end" == read_end(tmp_path / "file", 3)
    for name in ("link", "fifo"):
        with pytest.raises(OSError, match=name):
            read_end(tmp_path / name, 3)
