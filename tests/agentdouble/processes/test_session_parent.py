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
from tests.agentdouble.processes.becoming import ORDINARY, REPOSITORY, ROOT
from tests.agentdouble.processes.every_process import ANSWERS, answers

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.platform != "linux", reason="other systems have other directories"),
]
DIRECTORIES = {  # TMPDIR, and a part of the warning if sessions cannot be there
    "a link": ("{base}/link", ""),
    "relative": ("{relative}", ""),
    "missing": ("{base}/missing/there", ""),
    "long": ("{base}/" + "l" * 170, "too long for the paths of sockets"),
    "system": ("/usr", "is in /usr, whose files every session sees"),
}
NEVER_MADE = ("missing", "a link", "system")


@pytest.fixture(scope="module")
def places() -> Iterator[dict[str, str]]:
    """Directories that every user can write to, by their names in ``DIRECTORIES``."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="t-") as base:
        Path(base).chmod(0o1777)
        (Path(base) / "target").mkdir()
        (Path(base) / "target").chmod(0o1777)
        (Path(base) / "link").symlink_to("target")
        yield {"base": base, "relative": os.path.relpath(Path(base) / "relative", REPOSITORY)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "uid"),
    [
        ("a link", ROOT),
        ("relative", ORDINARY),
        ("missing", ROOT),
        ("long", ORDINARY),
        ("system", ROOT),
    ],
)
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

    ran = answers(uid, TMPDIR=directory)

    assert ran.stdout, ran.stderr
    assert ANSWERS == json.loads(ran.stdout)
    assert warning in ran.stderr
    assert bool(warning) == ("The files of sessions are in" in ran.stderr)


def test_without_any_directory_no_double_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    monkeypatch.setattr(os, "access", lambda *_: False)

    with pytest.raises(AgentDoubleError, match=r"/tmp cannot be written.*Set TMPDIR to a short"):
        Emulator()
