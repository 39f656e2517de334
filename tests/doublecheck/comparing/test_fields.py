from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from doublecheck.comparing.declared_fields import FIELDS
from doublecheck.comparing.differences import Difference
from doublecheck.comparing.fields import Fields
from doublecheck.comparing.references import Pairs
from doublecheck.comparing.structure import compare

pytestmark = pytest.mark.smoke

UUID = "0b0f3c1e-6f0e-4f0c-9d3e-2f6b7a1c9e{:02d}"
RUN_CODE, SESSION = "InvokeTool RunCode", "GET /apps/{app}/users/{user}/sessions/{session}"


def paths(operation: str, double: Any, live: Any, pairs: Pairs | None = None) -> list[str]:
    found = compare(double, live, pairs or Pairs(), Fields(operation))
    return [one.path for one in found]


def envelope(session: str, inner_session: str | None = None, **data: Any) -> dict[str, Any]:
    inner = {"data": {"session_id": inner_session or session, **data}}
    return {"Result": {"SessionId": session, "Result": json.dumps(inner)}}


def test_each_field_says_why_its_values_differ() -> None:
    """And in which answers."""
    assert all(one.reason and one.operations and one.paths for one in FIELDS)


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
def test_a_declared_field_has_other_values_on_each_platform(
    operation: str, double: Any, live: Any
) -> None:
    """Ids, times, prose with them in it; and addresses in memory, wherever code prints them."""
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
def test_any_other_field_has_the_same_value(operation: str, double: Any, live: Any) -> None:
    """Though it looks like an id or a time, or is called like one."""
    assert 1 == len(paths(operation, double, live))


@pytest.mark.parametrize("text", ["18446744073709551616", "4f2c2dfba8c841819d66f6b2a08a412c"])
def test_what_code_prints_is_compared_as_it_is(text: str) -> None:
    """A long number is a result, and so is a hash."""
    ours, theirs = (
        envelope(session, outputs=[{"text": printed, "traceback": None}])
        for session, printed in (("s-1a2b3c4d", text), ("s-5e6f7a8b", text[::-1]))
    )

    assert ["$.Result.Result.data.outputs[0].text"] == paths(RUN_CODE, ours, theirs)


def test_a_traceback_has_to_be_there() -> None:
    """Its lines are the platform's own."""
    ours, theirs, none = (
        envelope("s-1a2b3c4d", outputs=[{"traceback": lines}]) for lines in (["a"], ["b", "c"], [])
    )

    assert [] == paths(RUN_CODE, ours, theirs)
    assert ["$.Result.Result.data.outputs[0].traceback[0]"] == paths(RUN_CODE, ours, none)


@pytest.mark.parametrize(
    ("double", "live"),
    [
        ([("s-1", "s-1"), ("s-1", "s-1")], [("s-a", "s-a"), ("s-b", "s-b")]),
        ([("s-1", "s-1"), ("s-2", "s-2")], [("s-a", "s-a"), ("s-a", "s-a")]),
        ([("s-1", "s-1")], [("s-a", "s-b")]),
        ([("s-1", "s-2")], [("s-a", "s-a")]),
    ],
)
def test_ids_have_the_same_pattern_on_both_sides(
    double: list[tuple[str, str]], live: list[tuple[str, str]]
) -> None:
    """A session keeps its id, two have two, and two fields that agree on one side agree on both."""
    pairs = Pairs()
    found = [
        paths(RUN_CODE, envelope(*ours), envelope(*theirs), pairs)
        for ours, theirs in itertools.zip_longest(double, live)
    ]

    assert [] != list(itertools.chain(*found))


def test_an_id_that_contradicts_is_shown() -> None:
    """The double's by its name, the other as it is."""
    pairs, fields = Pairs(), Fields(RUN_CODE)
    list(compare(envelope("s-1a2b3c4d"), envelope("s-5e6f7a8b"), pairs, fields))

    found = list(compare(envelope("s-1a2b3c4d"), envelope("s-0d0d0d0d"), pairs, fields))

    assert [
        Difference("value", "$.Result.SessionId", "<session 1>", "s-0d0d0d0d"),
        Difference("value", "$.Result.Result.data.session_id", "<session 1>", "s-0d0d0d0d"),
    ] == found
