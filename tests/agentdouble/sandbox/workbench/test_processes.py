from __future__ import annotations

from pathlib import Path

import pytest

from agentdouble.sandbox.workbench import processes
from agentdouble.sandbox.workbench.processes import CommandOutput, shorten
from agentdouble.sandbox.workbench.wire import OutsideError, Paths

pytestmark = pytest.mark.once


def test_offsets_count_bytes() -> None:
    """Two offsets select the output written between them."""
    stream = CommandOutput()
    stream.append("Grüße".encode())
    stream.append(b", all")

    assert 12 == stream.end
    assert ("ße, all", 12) == stream.read(4)
    assert ("Gr", 2) == stream.read(-1, 2)
    assert ("", 12) == stream.read(99)


def test_an_incomplete_character_is_left_for_the_next_read() -> None:
    """It is not replaced."""
    stream = CommandOutput()
    stream.append("aß".encode()[:-1])
    first, offset = stream.read(0)
    stream.append("ß".encode()[1:])

    assert ("a", 1) == (first, offset)
    assert ("ß", 3) == stream.read(offset)


def test_a_flood_is_dropped_at_its_start_and_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded; a read from before gets the missing size."""
    monkeypatch.setattr(processes, "KEPT", 10)
    stream = CommandOutput()
    for _ in range(5):
        stream.append(b"12345")

    assert 25 == stream.end
    text, end = stream.read(0)
    assert ("[... 15 bytes were dropped ...]\n1234512345", 25) == (text, end)
    assert ("5", 25) == stream.read(24)
    assert ("[... 5 bytes were dropped ...]\n", 5) == stream.read(0, 5)


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 0, "abcdef"),
        ("abcdef", 4, "ab\n[... 2 characters omitted ...]\nef"),
        ("abcdef", 1, "\n[... 5 characters omitted ...]\nf"),
    ],
)
def test_text_is_truncated_in_the_middle(text: str, limit: int, expected: str) -> None:
    """Head and tail stay, with a mark for the missing size."""
    assert expected == shorten(text, limit)


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
