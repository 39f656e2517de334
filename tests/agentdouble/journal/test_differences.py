"""Differences between two answers, with a third to show what always varies."""

from __future__ import annotations

from typing import Any

import pytest

from agentdouble.journal.what_if_differences import LONGEST, differences, unfolded


@pytest.mark.parametrize(
    ("first", "again", "other", "differs"),
    [
        ("a", "a", "b", True),
        (True, True, 1, True),
        (1, 2, 3, False),
        (1, 2, "3", True),
        ("x 4f2a", "x 91bc", "x 77de", False),
        ("at 2026-11-23T10:00:00Z", "at 2026-11-23T10:00:00Z", "at 2026-11-23T10:00:01Z", False),
        ("-" * 100_000, "a" * 100_000, "b" * 100_000, False),
        ([], [], [1], True),
        ({}, {}, None, True),
    ],
)
def test_only_unusual_changes_differ(first: Any, again: Any, other: Any, differs: bool) -> None:
    changes = differences({"body": first}, {"body": again}, {"body": other})

    assert differs == bool(changes)


def test_missing_fields_are_differences() -> None:
    """Ids count; durations and connection headers do not."""
    first = {"body": {"id": "a1", "took_ms": 5}, "headers": {"date": "x"}}
    again = {"body": {"id": "b2", "took_ms": 5}, "headers": {"date": "y"}}
    other = {"body": {"took_ms": 9, "new": [1]}, "headers": {"date": "z"}}

    assert [
        {"path": "body.id", "in_force": "a1"},
        {"path": "body.new[0]", "other": 1},
    ] == differences(first, again, other)


def test_differences_are_redacted_and_truncated() -> None:
    """Lone surrogates are replaced so that they can be sent."""
    first = {"headers": {"authorization": "Bearer s3cret"}, "long": "a", "half": "a"}
    other = {"headers": {"authorization": "Bearer other"}, "long": "b" * 9000, "half": "\ud800"}

    header, long, half = differences(first, first, other)

    assert "***" in str(header)
    assert "s3cret" not in str(header)
    assert LONGEST + 100 > len(long["other"])
    assert "?" == half["other"]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ('{"Result": "{\\"a\\": [1]}"}', "application/json", {"Result": {"a": [1]}}),
        ('data: {"a": 1}\n\ndata: b\ndata: c\n\n: x\n\n', "text/event-stream", [{"a": 1}, "b\nc"]),
        ("data: a\u2028\rdata: b\r\rdata: c\r\n\r\n", "text/event-stream", ["a\u2028\nb", "c"]),
        ("plain", "text/plain", "plain"),
        ("[NaN]", "application/json", ["NaN"]),
        ("[" * 90_000, "application/json", "[" * 90_000),
    ],
)
def test_bodies_are_unfolded(text: str, kind: str, value: Any) -> None:
    """JSON inside strings is decoded, and an event becomes its data."""
    assert value == unfolded(text, kind)
