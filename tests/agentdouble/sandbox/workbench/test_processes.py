from __future__ import annotations

import pytest

from agentdouble.sandbox.workbench import processes
from agentdouble.sandbox.workbench.processes import Output, shorten

pytestmark = pytest.mark.once


def test_offsets_count_bytes() -> None:
    """Two offsets select the output written between them."""
    stream = Output()
    stream.append("Grüße".encode())
    stream.append(b", all")

    assert 12 == stream.end
    assert ("ße, all", 12) == stream.read(4)
    assert ("Gr", 2) == stream.read(-1, 2)
    assert ("", 12) == stream.read(99)


def test_an_incomplete_character_is_left_for_the_next_read() -> None:
    """It is not replaced."""
    stream = Output()
    stream.append("aß".encode()[:-1])
    first, offset = stream.read(0)
    stream.append("ß".encode()[1:])

    assert ("a", 1) == (first, offset)
    assert ("ß", 3) == stream.read(offset)


def test_a_flood_is_dropped_at_its_start_and_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded; a read from before gets the missing size."""
    monkeypatch.setattr(processes, "KEPT", 10)
    stream = Output()
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
