"""Each assertion of a check says in a sentence what the platform did wrong."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from doublecheck import contracts
from doublecheck.contracts.sentences import SHOWN_CHARS, instead, listed, short

MODULES = sorted(Path(contracts.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_every_assertion_has_a_sentence(module: Path) -> None:
    nodes = ast.walk(ast.parse(module.read_text("utf-8")))
    asserts = [node for node in nodes if isinstance(node, ast.Assert)]

    assert [] == [node.lineno for node in asserts if not _has_words(node.msg)]


def _has_words(message: ast.expr | None) -> bool:
    """Whether a message has words between its values."""
    nodes = ast.walk(message) if message is not None else ()
    texts = [str(node.value) for node in nodes if isinstance(node, ast.Constant)]
    return any(re.search(r"[a-z]{2}", text) and " " in text for text in texts)


@pytest.mark.parametrize(
    ("actual", "expected", "sentence"),
    [
        (1, True, "1 instead of True"),
        ("b", "c", "'b' instead of 'c'"),
        (["a", 1], ["a", 1.0], "in item 2, 1 instead of 1.0"),
        (["a"], ["a", "b"], "1 items instead of 2"),
        ({"a": {"b": None}}, {"a": {"b": 0}}, "in 'a', in 'b', None instead of 0"),
        ({}, {"a": 1}, "without 'a'"),
        ({"a": 1, "b": 2}, {"a": 1}, "with b"),
        ("x" * 99 + "y", "x" * 99, "from character 100, '...xxxxxxxxxxxxxxxxxxxxy' instead of"),
    ],
)
def test_differences_are_described(actual: Any, expected: Any, sentence: str) -> None:
    assert instead(actual, expected).startswith(sentence)


def test_long_values_are_short() -> None:
    assert len(short("x" * 10_000)) < 2 * SHOWN_CHARS
    assert "a, b, 3, 4, 5 and 2 more" == listed(["a", "b", 3, 4, 5, 6, 7])
