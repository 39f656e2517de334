"""Sessions start whatever ``TMPDIR`` says, or the double says why they cannot."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentdouble import Emulator
from agentdouble.errors import AgentDoubleError
from agentdouble.processes import session_parent
from tests.agentdouble.processes.becoming import ORDINARY, REPOSITORY, ROOT
from tests.agentdouble.processes.every_process import ANSWERS, answers

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.platform != "linux", reason="other systems have other directories"),
]
DIRECTORIES = {  # TMPDIR, and a part of the warning if sessions cannot be there
    "a space and letters": ("{base}/a b/\u00fcn\u00efcode", ""),
    "a slash at the end": ("{base}/slash/", ""),
    "a link": ("{base}/link", ""),
    "relative": ("{relative}", ""),
    "missing": ("{base}/missing/there", ""),
    "a file": ("{base}/file", ""),
    "long": ("{base}/" + "l" * 170, "too long for the paths of sockets"),
    "shared memory": ("{shared_memory}", "is in /dev, whose files every session sees"),
    "system": ("/usr", "is in /usr, whose files every session sees"),
    "below Python": ("{prefix}", "whose files every session sees"),
}
NEVER_MADE = ("missing", "a file", "a link", "system")


@pytest.fixture(scope="module")
def places() -> Iterator[dict[str, str]]:
    """Directories that every user can write to, by their names in ``DIRECTORIES``."""
    with (
        tempfile.TemporaryDirectory(dir="/tmp", prefix="t-") as base,
        tempfile.TemporaryDirectory(dir="/dev/shm", prefix="t-") as shared_memory,
        tempfile.TemporaryDirectory(dir=sys.prefix, prefix="t-") as prefix,
    ):
        for directory in (base, shared_memory, prefix):
            Path(directory).chmod(0o1777)
        (Path(base) / "target").mkdir()
        (Path(base) / "target").chmod(0o1777)
        (Path(base) / "link").symlink_to("target")
        (Path(base) / "file").touch()
        relative = os.path.relpath(Path(base) / "relative", REPOSITORY)
        yield {
            "base": base,
            "shared_memory": shared_memory,
            "prefix": prefix,
            "relative": relative,
        }


@pytest.mark.parametrize("uid", [ROOT, ORDINARY], ids=["root", "ordinary user"])
@pytest.mark.parametrize("name", DIRECTORIES)
def test_sessions_start_wherever_temporary_files_go(
    name: str, uid: int, places: dict[str, str]
) -> None:
    """In /tmp if they cannot be in TMPDIR, and the double says so."""
    if os.geteuid() != ROOT and uid == ROOT:
        pytest.skip("needs root")
    directory, warning = DIRECTORIES[name]
    directory = directory.format(**places)
    if name not in NEVER_MADE:
        made = REPOSITORY / directory
        made.mkdir(parents=True, exist_ok=True)
        made.chmod(0o1777)
    if name == "system" and uid != ROOT:
        warning = ""  # Python knows that this user cannot write there

    ran = answers(uid, TMPDIR=directory)

    assert ran.stdout, ran.stderr
    assert ANSWERS == json.loads(ran.stdout)
    assert warning in ran.stderr
    assert bool(warning) == ("The files of sessions are in" in ran.stderr)


def test_the_current_directory_is_made_absolute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="t-") as here:
        monkeypatch.chdir(here)
        monkeypatch.setattr(tempfile, "tempdir", ".")  # as Python 3.11 takes TMPDIR=.

        assert Path(here) == session_parent.find()


def test_without_any_directory_no_double_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    monkeypatch.setattr(os, "access", lambda *_: False)

    with pytest.raises(AgentDoubleError, match=r"/tmp cannot be written.*Set TMPDIR to a short"):
        Emulator()
