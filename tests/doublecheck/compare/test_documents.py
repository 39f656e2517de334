from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any

import pytest

from agentdouble.core.diff.answers import mismatches
from agentdouble.core.diff.documents import Documents, Mismatch
from agentdouble.core.diff.fields import Fields
from agentdouble.core.diff.pairs import Pairs
from doublecheck.wire.calls import Request
from doublecheck.wire.exchanges import Exchange

pytestmark = pytest.mark.smoke


UUID = "0b0f3c1e-6f0e-4f0c-9d3e-2f6b7a1c9e{:02d}"
RUN_CODE, SESSION = "InvokeTool RunCode", "GET /apps/{app}/users/{user}/sessions/{session}"


def compare(
    double: Any, live: Any, operation: str = "POST /invoke", pairs: Pairs | None = None
) -> list[Mismatch]:
    return list(Documents(pairs or Pairs(), Fields(operation)).compare(double, live))


def paths(operation: str, double: Any, live: Any, pairs: Pairs | None = None) -> list[str]:
    return [difference.path for difference in compare(double, live, operation, pairs)]


def envelope(session: str, inner_session: str | None = None, **data: Any) -> dict[str, Any]:
    inner = {"data": {"session_id": inner_session or session, **data}}
    return {"Result": {"SessionId": session, "Result": json.dumps(inner)}}


def request(url: str = "http://x/", **document: Any) -> Request:
    return Request("POST", url, {}, json.dumps(document).encode())


@pytest.mark.parametrize(
    ("double", "live", "expected"),
    [
        ({"a": [1, None, True, "x"]}, {"a": [1, None, True, "x"]}, []),
        ({"a": 1}, {}, [Mismatch("only first", "$.a", first=1)]),
        ({}, {"a b": 1}, [Mismatch("only second", '$["a b"]', second=1)]),
        ({"a": 1}, {"a": "1"}, [Mismatch("type", "$.a", 1, "1")]),
        ({"a": True}, {"a": 1}, [Mismatch("type", "$.a", True, 1)]),
        ({"a": None}, {"a": 1}, [Mismatch("type", "$.a", None, 1)]),
        ({"a": [1]}, {"a": {}}, [Mismatch("type", "$.a", [1], {})]),
        (["x", "y"], ["x", "z"], [Mismatch("value", "$[1]", "y", "z")]),
        (["x", "y"], ["x"], [Mismatch("only first", "$[1]", first="y")]),
        (["x"], ["x", "y"], [Mismatch("only second", "$[1]", second="y")]),
        ({"x_id": "a1"}, {"x_id": "b2"}, [Mismatch("value", "$.x_id", "a1", "b2")]),
    ],
)
def test_a_difference_has_a_path_and_both_values(
    double: Any, live: Any, expected: list[Mismatch]
) -> None:
    assert expected == compare(double, live)


@pytest.mark.parametrize(
    ("operation", "double", "live"),
    [
        (RUN_CODE, envelope("s-1a2b3c4d"), envelope("s-5e6f7a8b")),
        (
            SESSION,
            {"id": "7", "lastUpdateTime": 1795420126.4},
            {"id": "x", "lastUpdateTime": 1795429999},
        ),
        (SESSION, {"detail": f"no {UUID.format(1)}"}, {"detail": f"no {UUID.format(2)}"}),
        ("GET /ping", {"timestamp": 1795420126}, {"timestamp": 1795420127.5}),
        ("/mcp tools/call", {"m": "<f at 0x7f0011223344>"}, {"m": "<f at 0x7f9911223344>"}),
    ],
)
def test_declared_fields_may_differ(operation: str, double: Any, live: Any) -> None:
    """They are ids, times, prose that contains them and printed memory addresses."""
    assert [] == paths(operation, double, live)


@pytest.mark.parametrize(
    ("operation", "double", "live"),
    [
        ("POST /invoke", {"order_id": 17}, {"order_id": 18}),
        ("POST /invoke", {"id": UUID.format(1)}, {"id": UUID.format(2)}),
        ("POST /invoke", {"at": "2026-01-02T03:04:05Z"}, {"at": "2027-01-02T03:04:05Z"}),
        ("POST /invoke", {"total": 1_500_000_000}, {"total": 1_600_000_000}),
        ("POST /invoke", {"duration_ms": 1}, {"duration_ms": 2}),
        ("POST /invoke", {"traceback": ["a"]}, {"traceback": ["b"]}),
        ("POST /invoke", {"text": '{"a": 1}'}, {"text": '{"a":1}'}),
        (SESSION, {"lastUpdateTime": 1795420126}, {"lastUpdateTime": "banana"}),
        (SESSION, {"state": {"id": "a1"}}, {"state": {"id": "a2"}}),
        (
            "POST /run",
            [{"content": {"parts": [{"text": UUID.format(1)}]}}],
            [{"content": {"parts": [{"text": UUID.format(2)}]}}],
        ),
    ],
)
def test_all_other_fields_must_be_equal(operation: str, double: Any, live: Any) -> None:
    """A value or a name that looks like an id or a time is no exception."""
    assert 1 == len(paths(operation, double, live))


@pytest.mark.parametrize("text", ["18446744073709551616", "4f2c2dfba8c841819d66f6b2a08a412c"])
def test_printed_output_is_compared_literally(text: str) -> None:
    """A long number or a hash is a result, not an id."""
    double_body, live_body = (
        envelope(session, outputs=[{"text": printed, "traceback": None}])
        for session, printed in (("s-1a2b3c4d", text), ("s-5e6f7a8b", text[::-1]))
    )

    assert ["$.Result.Result.data.outputs[0].text"] == paths(RUN_CODE, double_body, live_body)


def test_a_missing_traceback_is_a_difference() -> None:
    """Its lines may differ."""
    double_body, live_body, empty = (
        envelope("s-1a2b3c4d", outputs=[{"traceback": lines}]) for lines in (["a"], ["b", "c"], [])
    )

    assert [] == paths(RUN_CODE, double_body, live_body)
    assert ["$.Result.Result.data.outputs[0].traceback[0]"] == paths(RUN_CODE, double_body, empty)


@pytest.mark.parametrize(
    ("double", "live"),
    [
        ([("s-1", "s-1"), ("s-1", "s-1")], [("s-a", "s-a"), ("s-b", "s-b")]),
        ([("s-1", "s-1"), ("s-2", "s-2")], [("s-a", "s-a"), ("s-a", "s-a")]),
        ([("s-1", "s-1")], [("s-a", "s-b")]),
        ([("s-1", "s-2")], [("s-a", "s-a")]),
    ],
)
def test_ids_must_correspond_one_to_one(
    double: list[tuple[str, str]], live: list[tuple[str, str]]
) -> None:
    """Ids that are equal on one side must be equal on the other."""
    pairs = Pairs()
    found_differences = [
        paths(RUN_CODE, envelope(*double_item), envelope(*live_item), pairs)
        for double_item, live_item in itertools.zip_longest(double, live)
    ]

    assert [] != list(itertools.chain(*found_differences))


def test_a_contradicting_id_is_a_difference() -> None:
    """The double's id is shown by name, the other one literally."""
    pairs = Pairs()
    compare(envelope("s-1a2b3c4d"), envelope("s-5e6f7a8b"), RUN_CODE, pairs)

    assert [
        Mismatch("value", "$.Result.SessionId", "<session 1>", "s-0d0d0d0d"),
        Mismatch("value", "$.Result.Result.data.session_id", "<session 1>", "s-0d0d0d0d"),
    ] == compare(envelope("s-1a2b3c4d"), envelope("s-0d0d0d0d"), RUN_CODE, pairs)


@pytest.mark.parametrize("field", ["UserSessionId", "ToolId"])
def test_an_answer_must_repeat_the_name_in_its_request(field: str) -> None:
    """Both requests may have the same name."""
    pairs = Pairs()
    pairs.learn(request(**{field: "a1"}), request(**{field: "a1"}))
    right, wrong = {"Result": {field: "a1"}}, {"Result": {field: "b2"}}

    assert [] == compare(right, right, RUN_CODE, pairs)
    assert [Mismatch("value", f"$.Result.{field}", "a1", "b2")] == compare(
        right, wrong, RUN_CODE, pairs
    )


def test_names_in_request_paths_are_matched() -> None:
    """The answers must have them, too."""
    pairs = Pairs()
    pairs.learn(request("http://x/sessions/d1"), request("http://y/sessions/l1"))

    assert [] == paths(SESSION, {"id": "d1"}, {"id": "l1"}, pairs)
    assert ["$.id"] == paths(SESSION, {"id": "d1"}, {"id": "l2"}, pairs)


def test_an_answer_must_repeat_the_id_of_its_request() -> None:
    """Several clients may use the same number."""
    pairs, operation = Pairs(), "/mcp tools/list"
    for double_value, live_value in ((5, 8), (8, 8), (8, 5)):
        pairs.learn(request(id=double_value), request(id=live_value))
        assert [] == paths(operation, {"id": double_value}, {"id": live_value}, pairs)

    assert ["$.id"] == paths(operation, {"id": 8}, {"id": 6}, pairs)


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

    assert (Mismatch("value", "status", 200, "no answer"),) == mismatches(
        answer(1), broken, Pairs()
    )
    assert () == mismatches(broken, broken, Pairs())


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
    assert () == mismatches(double, live, Pairs())


def test_events_are_compared_in_order() -> None:
    """An extra or changed event is reported with its position."""
    found_differences = mismatches(
        stream('{"x": 1}', '{"x": 2}'), stream('{"x": 1}', '{"x": 3}', '{"error": "e"}'), Pairs()
    )

    assert (
        Mismatch("value", "events[1]$.x", 2, 3),
        Mismatch("only second", "events[2]", second={"error": "e"}),
    ) == found_differences


def test_deeply_nested_json_is_compared_as_text() -> None:
    double, live = (answer(b"[" * 500 + last + b"]" * 500) for last in (b"1", b"2"))

    (difference,) = mismatches(double, live, Pairs())

    assert ("value", "$") == (difference.kind, difference.path)


def test_a_broken_answer_is_a_difference() -> None:
    """The part before the break is compared, too."""
    complete, broken = stream("a"), dataclasses.replace(stream("a"), error="ReadError: reset")

    (difference,) = mismatches(complete, broken, Pairs())

    assert Mismatch("value", "end", "whole", "ReadError: reset") == difference


def test_binary_answers_are_compared() -> None:
    """They differ even if they decode to the same text."""
    double, live = (answer(bytes([byte]) * 4, kind="image/png") for byte in (0xFE, 0xFF))

    (difference,) = mismatches(double, live, Pairs())

    assert ("value", "$") == (difference.kind, difference.path)
    assert difference.first.startswith("4 bytes, SHA-256 ")


def test_increments_of_different_authors_are_not_joined() -> None:
    increment = '{"partial": true, "author": "%s", "content": {"parts": [{"text": "%s"}]}}'
    double = stream(increment % ("a", "Hel"), increment % ("a", "lo"))
    live = stream(increment % ("a", "Hel"), increment % ("b", "lo"))

    assert ["events[0]$.content.parts[0].text", "events[1]"] == [
        difference.path for difference in mismatches(double, live, Pairs(), "POST /run_sse")
    ]


def test_an_mcp_session_keeps_its_id() -> None:
    """The id in the header differs between the platforms, but not between answers."""
    pairs = Pairs()
    sessions = [("d1", "l1"), ("d1", "l1"), ("d1", "l2")]
    answers = [
        [dataclasses.replace(answer({}), headers={"mcp-session-id": id_}) for id_ in ids]
        for ids in sessions
    ]

    found_differences = [mismatches(*sides, pairs) for sides in answers]

    assert [(), ()] == found_differences[:2]
    assert (Mismatch("value", "mcp-session-id", "<MCP session 1>", "l2"),) == found_differences[2]
