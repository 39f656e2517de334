from __future__ import annotations

from pathlib import Path

import pytest

from agentdouble.sandbox.workbench.wire import OutsideError, Paths

pytestmark = pytest.mark.once


@pytest.fixture
def mapped(tmp_path: Path) -> Paths:
    """The paths of a session without isolation."""
    for name in ("home", "tmp", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "other" / "secret").write_text("secret")
    return Paths((("/home/gem", f"{tmp_path}/home"), ("/tmp", f"{tmp_path}/tmp")))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/gem", "home"),
        ("/home/gem/a/../b c", "home/b c"),
        ("notes.txt", "home/notes.txt"),
    ],
)
def test_session_paths_are_mapped(mapped: Paths, tmp_path: Path, path: str, expected: str) -> None:
    """/home/gem and /tmp map to the session's directories and back."""
    assert str(tmp_path / expected) == mapped.real(path)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../../etc/passwd",
        "/home/gem/../other",
        "link/secret",
        "linked",
    ],
)
def test_mapped_paths_cannot_leave_the_session(mapped: Paths, tmp_path: Path, path: str) -> None:
    """Neither absolute paths nor .. nor links lead out."""
    (tmp_path / "home" / "link").symlink_to(tmp_path / "other")
    (tmp_path / "home" / "linked").symlink_to("/etc/passwd")

    with pytest.raises(OutsideError):
        mapped.real(path)


def test_an_isolated_session_needs_no_mapping() -> None:
    """Paths are unchanged; relative ones start at home."""
    assert ("/etc/passwd", "/home/gem/a") == (Paths().real("/etc/passwd"), Paths().real("a"))
    assert "/home/gem/a" == Paths().shown("/home/gem/a")


def test_a_path_with_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        Paths().real("a\0b")
