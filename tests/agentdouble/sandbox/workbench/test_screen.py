"""The screen of a terminal as rows of text with their styles."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("pyte", reason="needs pip install 'agentdouble[console]'")

from agentdouble.sandbox.workbench.screen import Screen


def rows(screen: Screen) -> list[str]:
    """Return the text of the rows that have changed."""
    changed = screen.changes()["rows"].values()
    return ["".join(run[0] for run in row) for row in changed]


def test_a_row_is_told_with_its_styles_when_it_changes() -> None:
    """Colours are the numbers of a palette or six digits; a title is not told."""
    screen = Screen(40, 3)
    screen.changes()

    screen.feed("\x1b]0;title\x07\x1b[1;31mred\x1b[0m \x1b[38;5;208morange\x1b[7m<b>")

    assert {
        "event": "screen",
        "size": [40, 3],
        "rows": {
            "0": [
                ["red", {"fg": "1", "bold": True}],
                [" "],
                ["orange", {"fg": "ff8700"}],
                ["<b>", {"fg": "ff8700", "reverse": True}],
            ]
        },
        "scrolled": [],
        "cursor": [13, 0],
        "application_keys": False,
        "bracketed_paste": False,
    } == screen.changes()
    assert {} == screen.changes()


def test_lines_that_leave_the_screen_are_told_once() -> None:
    """Not those of an editor, which has a screen of its own."""
    screen = Screen(20, 2)

    screen.feed("one\r\ntwo\r\nthree")
    scrolled = screen.changes()["scrolled"]
    screen.feed("\x1b[?1049h\x1b[Ha\r\nb\r\nc")
    inside = (screen.changes()["scrolled"], screen.buffer[1][0].data)
    screen.feed("\x1b[?1049l")

    assert ([[["one"]]], ([], "c")) == (scrolled, inside)
    assert ["two", "three"] == rows(screen)


def test_what_a_program_asks_is_answered_and_keys_are_no_colours() -> None:
    """Vim sends the latter: without care, all that follows would be underlined."""
    screen = Screen(20, 2)

    screen.feed("ab\x1b[6n\x1b[>4;2m\x1b[?4mc\x1b[?1h\x1b[?2004h")
    changes = screen.changes()

    assert ["\x1b[1;3R"] == screen.typed
    assert [["abc"]] == changes["rows"]["0"]
    assert (True, True) == (changes["application_keys"], changes["bracketed_paste"])


def test_no_sequence_breaks_a_screen() -> None:
    """2,000 that no program would send."""
    screen, drawn = Screen(20, 5), random.Random(1)
    letters = "0123456789;?>< abcdhlmnrABCDHJKLMPSTX\r\n\x1b\x0e\x9b"

    for _ in range(2000):
        start = drawn.choice(["[", "]", "(", "#", "", "[?"])
        screen.feed("\x1b" + start + "".join(drawn.choices(letters, k=12)))
        screen.changes()
    screen.feed("\x07\x18\x1bcstill here")

    assert "still here" in rows(screen)
