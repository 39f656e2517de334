from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from doublecheck.comparing import structure
from doublecheck.comparing.declared_fields import Field
from doublecheck.comparing.differences import Difference
from doublecheck.comparing.fields import Fields
from doublecheck.comparing.references import Pairs

FIELDS = Fields(
    "GET /x",
    [
        Field("id", ("*",), ("$.id", "$.parent", "$.sessionId"), "its own"),
        Field("time", ("*",), ("$.at",), "its clock"),
        Field("prose", ("*",), ("$.m",), "it names them"),
        Field("json", ("*",), ("$.Result",), "it contains JSON"),
    ],
)
UUID = "0b0f3c1e-6f0e-4f0c-9d3e-2f6b7a1c9e{:02d}"


def compare(double: Any, live: Any, pairs: Pairs) -> Iterator[Difference]:
    return structure.compare(double, live, pairs, FIELDS)


def test_equal_documents_have_no_difference() -> None:
    """Whatever they hold."""
    document = {"a": [1, None, True, "x"], "b": {"c": 1.5}}

    assert [] == list(compare(document, document, Pairs()))


@pytest.mark.parametrize(
    ("double", "live", "expected"),
    [
        ({"a": 1}, {}, Difference("only double", "$.a", double=1)),
        ({}, {"a b": 1}, Difference("only live", '$["a b"]', live=1)),
        ({"a": 1}, {"a": "1"}, Difference("type", "$.a", 1, "1")),
        ({"a": True}, {"a": 1}, Difference("type", "$.a", True, 1)),
        ({"a": None}, {"a": 1}, Difference("type", "$.a", None, 1)),
        ({"a": [1]}, {"a": {}}, Difference("type", "$.a", [1], {})),
        (["x", "y"], ["x", "z"], Difference("value", "$[1]", "y", "z")),
        (["x", "y"], ["y", "x"], Difference("order", "$", ["x", "y"], ["y", "x"])),
        (["x", "y"], ["y"], Difference("only double", "$[0]", double="x")),
        (["y"], ["x", "y"], Difference("only live", "$[0]", live="x")),
        ({"x_id": "a1"}, {"x_id": "b2"}, Difference("value", "$.x_id", "a1", "b2")),
        (
            {"v": "2025-11-25"},
            {"v": "2025-06-18"},
            Difference("value", "$.v", "2025-11-25", "2025-06-18"),
        ),
    ],
)
def test_a_difference_says_where_and_what(double: Any, live: Any, expected: Difference) -> None:
    """Missing, extra, of another type, of another value, in another order."""
    assert [expected] == list(compare(double, live, Pairs()))


@pytest.mark.parametrize(
    ("double", "live"),
    [
        ({"id": UUID.format(1)}, {"id": UUID.format(2)}),
        ({"id": 7}, {"id": 12}),
        ({"at": "2026-01-02T03:04:05Z"}, {"at": "2027-01-02T03:04:05.123+00:00"}),
        ({"at": 1767322445.5}, {"at": 1798858445}),
        ({"m": f"no session {UUID.format(1)}."}, {"m": f"no session {UUID.format(2)}."}),
        ({"x": "<f at 0x7f0011223344>"}, {"x": "<f at 0x7f9911223344>"}),
    ],
)
def test_ids_and_times_say_nothing(double: Any, live: Any) -> None:
    """Nor do they inside a text."""
    assert [] == list(compare(double, live, Pairs()))


def test_an_id_that_belongs_to_another_shows() -> None:
    """The same id everywhere on the double must be the same everywhere on the live platform."""
    pairs = Pairs()
    list(compare({"id": UUID.format(1)}, {"id": UUID.format(2)}, pairs))
    list(compare({"id": UUID.format(3)}, {"id": UUID.format(4)}, pairs))

    found = list(compare({"parent": UUID.format(1)}, {"parent": UUID.format(4)}, pairs))

    assert [Difference("value", "$.parent", "<id 1>", "<id 2>")] == found


def test_an_id_is_followed_into_texts_and_inner_json() -> None:
    """By its value, whatever the field is called there."""
    pairs = Pairs()
    list(compare({"sessionId": "abc-1234"}, {"sessionId": "xyz-9876"}, pairs))

    inner = {"Result": '{"success": true, "message": "in abc-1234"}'}
    live = {"Result": '{"message": "in xyz-9876", "success": false}'}

    found = list(compare(inner, live, pairs))

    assert [Difference("value", "$.Result.success", True, False)] == found


def test_what_is_known_beforehand_is_seeded() -> None:
    """The addresses of the two platforms are the same thing."""
    pairs = Pairs()
    pairs.seed("platform", "http://127.0.0.1:1", "https://live.example.com")

    card = {"url": "http://127.0.0.1:1/a"}

    assert [] == list(compare(card, {"url": "https://live.example.com/a"}, pairs))


def test_long_arrays_end() -> None:
    """Arrays that are too long to be aligned are compared as they stand."""
    found = list(compare([1] * 20_000, [1] * 20_001, Pairs()))

    assert [Difference("only live", "$[20000]", live=1)] == found
