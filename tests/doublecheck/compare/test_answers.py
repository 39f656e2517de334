from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from doublecheck.compare.answers import differences
from doublecheck.compare.differences import Difference
from doublecheck.compare.fields import Pairs
from doublecheck.wire.calls import Request
from doublecheck.wire.exchanges import Exchange

pytestmark = pytest.mark.smoke

JSON = "application/json"
REQUEST = Request("POST", "http://x")


def answer(document: Any, status: int = 200, unknowns: str = "", kind: str = JSON) -> Exchange:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    headers = {"content-type": kind, "x-agentdouble-unknowns": unknowns}
    return Exchange(REQUEST, status, headers, body)


def stream(*data: str) -> Exchange:
    body = "".join(f"data: {event}\n\n" for event in data).encode()
    return Exchange(REQUEST, 200, {"content-type": "text/event-stream; charset=utf-8"}, body)


def test_a_missing_answer_on_one_side_is_a_difference() -> None:
    broken = Exchange(REQUEST, error="reset")

    assert (Difference("value", "status", 200, "no answer"),) == differences(
        answer(1), broken, Pairs()
    )
    assert () == differences(broken, broken, Pairs())


@pytest.mark.parametrize(
    ("double", "live"),
    [
        (stream("a", "b", "c"), stream("ab", "c")),
        (stream('{"x": 1}'), stream('{"x":1}')),
        (
            stream(
                '{"partial": true, "content": {"parts": [{"text": "Hel"}]}}',
                '{"partial": true, "content": {"parts": [{"text": "lo"}]}}',
            ),
            stream('{"partial": true, "content": {"parts": [{"text": "Hello"}]}}'),
        ),
    ],
)
def test_chunk_boundaries_of_a_stream_do_not_matter(double: Exchange, live: Exchange) -> None:
    """Increments are joined before the comparison."""
    assert () == differences(double, live, Pairs())


def test_events_are_compared_in_order() -> None:
    """An extra or changed event is reported with its position."""
    found_differences = differences(
        stream('{"x": 1}', '{"x": 2}'), stream('{"x": 1}', '{"x": 3}', '{"error": "e"}'), Pairs()
    )

    assert (
        Difference("value", "events[1]$.x", 2, 3),
        Difference("only live", "events[2]", live={"error": "e"}),
    ) == found_differences


def test_deeply_nested_json_is_compared_as_text() -> None:
    double, live = (answer(b"[" * 500 + last + b"]" * 500) for last in (b"1", b"2"))

    (difference,) = differences(double, live, Pairs())

    assert ("value", "$") == (difference.kind, difference.path)


def test_a_broken_answer_is_a_difference() -> None:
    """The part before the break is compared, too."""
    complete, broken = stream("a"), dataclasses.replace(stream("a"), error="ReadError: reset")

    (difference,) = differences(complete, broken, Pairs())

    assert Difference("value", "end", "whole", "ReadError: reset") == difference


def test_binary_answers_are_compared() -> None:
    """They differ even if they decode to the same text."""
    double, live = (answer(bytes([byte]) * 4, kind="image/png") for byte in (0xFE, 0xFF))

    (difference,) = differences(double, live, Pairs())

    assert ("value", "$") == (difference.kind, difference.path)
    assert difference.double.startswith("4 bytes, SHA-256 ")


def test_increments_of_different_authors_are_not_joined() -> None:
    increment = '{"partial": true, "author": "%s", "content": {"parts": [{"text": "%s"}]}}'
    double = stream(increment % ("a", "Hel"), increment % ("a", "lo"))
    live = stream(increment % ("a", "Hel"), increment % ("b", "lo"))

    assert ["events[0]$.content.parts[0].text", "events[1]"] == [
        difference.path for difference in differences(double, live, Pairs(), "POST /run_sse")
    ]


def test_an_mcp_session_keeps_its_id() -> None:
    """The id in the header differs between the platforms, but not between answers."""
    pairs = Pairs()
    sessions = [("d1", "l1"), ("d1", "l1"), ("d1", "l2")]
    answers = [
        [dataclasses.replace(answer({}), headers={"mcp-session-id": id_}) for id_ in ids]
        for ids in sessions
    ]

    found_differences = [differences(*sides, pairs) for sides in answers]

    assert [(), ()] == found_differences[:2]
    assert (Difference("value", "mcp-session-id", "<MCP session 1>", "l2"),) == found_differences[2]
