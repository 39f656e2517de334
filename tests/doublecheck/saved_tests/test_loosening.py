"""What of a recorded value is still asserted after repeats."""

from __future__ import annotations

from typing import Any
from unittest.mock import ANY

import pytest

from doublecheck.saved_tests.loosening import in_lines, loosened


@pytest.mark.parametrize(
    ("recorded", "repeats", "expected"),
    [
        ("a", [], "a"),
        ("a", ["a", "a"], "a"),
        ("a", ["a", "b"], ANY),
        ([1, 2], [[1, 3], [1, 4]], [1, ANY]),
        ([1, 2], [[1], [1, 2]], ANY),
        ([1], [[2], [3]], ANY),
        ({"a": 1, "b": {"c": [1]}}, [{"a": 1, "b": {"c": [2]}}] * 2, {"a": 1, "b": ANY}),
        ({"a": 1}, [{"b": 1}, {"a": 1}], ANY),
        (float("nan"), [float("nan")], ANY),
        ([], [[], []], []),
    ],
)
def test_what_differs_is_any(recorded: Any, repeats: list[Any], expected: Any) -> None:
    """Everything else stays, and what is left of nothing is nothing."""
    found = loosened(recorded, repeats, like_recorded=True)

    assert (expected is ANY, repr(expected)) == (found is ANY, repr(found))


def test_what_every_repeat_says_alike_is_kept_as_it_was_recorded() -> None:
    """The tests may serve another application; only what changes among the repeats is ANY."""
    recorded, repeats = {"a": 1, "b": 2}, [{"a": 5, "b": 3}, {"a": 5, "b": 4}]

    assert "{'a': 1, 'b': <ANY>}" == repr(loosened(recorded, repeats, like_recorded=False))
    assert "recorded" == loosened("recorded", ["other", "other"], like_recorded=False)


def test_a_text_is_compared_by_its_lines() -> None:
    """If there are as many of them each time, and one is the same."""
    assert ["a", ANY] == in_lines("a\nb\n", ["a\nc\n", "a\nd\n"], like_recorded=True)
    assert in_lines("a\nb", ["a\nb\nc", "a"], like_recorded=True) is None
    assert in_lines("a", ["b", "c"], like_recorded=True) is None
    assert in_lines("a", [None, None], like_recorded=True) is None
