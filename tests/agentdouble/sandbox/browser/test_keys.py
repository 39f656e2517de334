from __future__ import annotations

import pytest

from agentdouble.sandbox.browser import keys

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a", "a"),
        ("A", "A"),
        ("+", "+"),
        (" ", "Space"),
        ("enter", "Enter"),
        ("Return", "Enter"),
        ("ctrl", "Control"),
        ("Control", "Control"),
        ("ctrlright", "ControlRight"),
        ("win", "Meta"),
        ("esc", "Escape"),
        ("page_down", "PageDown"),
        ("pgup", "PageUp"),
        ("ArrowLeft", "ArrowLeft"),
        ("f12", "F12"),
        ("num7", "Numpad7"),
    ],
)
def test_a_key_is_found_by_any_of_its_names(name: str, found: str) -> None:
    """Desktops, PyAutoGUI and Playwright call them differently; case and _ do not matter."""
    assert found == keys.find(name)


@pytest.mark.parametrize("name", ["", "nokey", "f13", "é", "ctrl+a", "\n", "\x00"])
def test_what_is_no_key_is_refused_with_those_that_are(name: str) -> None:
    """Text goes into TYPING, combinations into HOTKEY."""
    with pytest.raises(ValueError, match="is no key: use a character of ASCII, or one of add, alt"):
        keys.find(name)
