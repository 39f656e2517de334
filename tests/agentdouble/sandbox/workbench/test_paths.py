from __future__ import annotations

from pathlib import Path

import pytest

from agentdouble.sandbox.workbench.wire import OutsideError, Paths

pytestmark = pytest.mark.once


@pytest.fixture
def mapped(tmp_path: Path) -> Paths:
    """The paths of a session without a view of its own."""
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
def test_the_session_s_paths_are_mapped(
    mapped: Paths, tmp_path: Path, path: str, expected: str
) -> None:
    """/home/gem and /tmp are the session's directories, and back again."""
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
def test_nothing_outside_is_to_be_had_where_paths_are_mapped(
    mapped: Paths, tmp_path: Path, path: str
) -> None:
    """Not by an absolute path, not by .., not by a link that leads out."""
    (tmp_path / "home" / "link").symlink_to(tmp_path / "other")
    (tmp_path / "home" / "linked").symlink_to("/etc/passwd")

    with pytest.raises(OutsideError):
        mapped.real(path)


def test_a_view_of_its_own_needs_no_mapping() -> None:
    """The paths are what they are; a relative one begins at home."""
    assert ("/etc/passwd", "/home/gem/a") == (Paths().real("/etc/passwd"), Paths().real("a"))
    assert "/home/gem/a" == Paths().shown("/home/gem/a")


def test_a_path_has_no_nul() -> None:
    """It is refused before the system would."""
    with pytest.raises(ValueError, match="NUL"):
        Paths().real("a\0b")
