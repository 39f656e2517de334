from __future__ import annotations

import json
from typing import Any

import pytest

from agentdouble import ledger
from doublecheck.comparing import explaining
from doublecheck.comparing.answers import Answer, differences
from doublecheck.comparing.differences import Class, Difference, worst
from doublecheck.comparing.references import Pairs

pytestmark = pytest.mark.smoke

JSON = "application/json"


def answer(document: Any, status: int = 200, unknowns: str = "", kind: str = JSON) -> Answer:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return Answer(status, {"content-type": kind, "x-agentdouble-unknowns": unknowns}, body)


def stream(*data: str) -> Answer:
    body = "".join(f"data: {one}\n\n" for one in data).encode()
    return Answer(200, {"content-type": "text/event-stream; charset=utf-8"}, body)


def test_the_charset_of_a_content_type_says_nothing() -> None:
    """Its media type does."""
    ours, theirs = answer("a", kind="application/json; charset=utf-8"), answer("a")

    assert () == differences(ours, theirs, Pairs())
    (found,) = differences(ours, answer("a", kind="text/plain"), Pairs())
    assert Difference("value", "content-type", JSON, "text/plain") == found


def test_after_another_status_nothing_is_compared() -> None:
    """The bodies are about something else."""
    found = differences(answer({"a": 1}), answer({"detail": "no"}, 404), Pairs())

    assert (Difference("value", "status", 200, 404),) == found


def test_no_answer_is_a_difference() -> None:
    """On one side; on both it is none."""
    broken = Answer(None, error="reset")

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
def test_where_a_stream_cuts_its_text_says_nothing(double: Answer, live: Answer) -> None:
    """Increments are joined before events are compared."""
    assert () == differences(double, live, Pairs())


def test_events_are_compared_in_their_order() -> None:
    """A further one and a changed one show, with their place."""
    found = differences(
        stream('{"x": 1}', '{"x": 2}'), stream('{"x": 1}', '{"x": 3}', '{"error": "e"}'), Pairs()
    )

    assert (
        Difference("value", "events[1]$.x", 2, 3),
        Difference("only live", "events[2]", live={"error": "e"}),
    ) == found


def test_an_unknown_explains_what_it_is_about() -> None:
    """The envelope of an invocation is open: that an object is there instead of a string."""
    relied = answer("hello", unknowns="U-INVOKE-ENVELOPE")

    (found,) = differences(relied, answer({"response": "hello"}), Pairs())

    assert (Class.ASSUMED, "U-INVOKE-ENVELOPE") == (found.cls, found.because)


@pytest.mark.parametrize(
    ("double", "live", "expected"),
    [
        (answer("a", unknowns="U-INVOKE-ENVELOPE"), answer("b"), Class.DIVERGES),
        (answer("a"), answer({"response": "a"}), Class.DIVERGES),
        (answer("a", unknowns="U-INVOKE-ENVELOPE"), answer({"response": "b"}), Class.DIVERGES),
        (answer(["a"], unknowns="U-LIST-APPS"), answer({"apps": [{"name": "b"}]}), Class.DIVERGES),
        (answer(["a"], unknowns="U-LIST-APPS"), answer({"apps": [{"name": "a"}]}), Class.ASSUMED),
        (answer({"id": "i1"}, unknowns="U-SESSION-FIELDS"), answer({}), Class.ONLY_DOUBLE),
        (answer({}, unknowns="U-SIGNING"), answer({"a": 1}), Class.ONLY_LIVE),
        (answer({}, unknowns="U-SIGNING"), answer({}, 500), Class.DIVERGES),
        (answer({}, unknowns="U-SIGNING"), answer({}, 401), Class.ASSUMED),
        (answer({"state": {}}, unknowns="U-SESSION-FIELDS"), answer({}), Class.ASSUMED),
    ],
)
def test_an_unknown_explains_nothing_else(double: Answer, live: Answer, expected: Class) -> None:
    """Not other values, not fields that are specified, not what the answer did not rely on."""
    found = differences(double, live, Pairs())

    assert [expected] == [one.cls for one in found]


@pytest.mark.parametrize(
    ("ours", "theirs", "unknown"),
    [
        (409, 200, "U-SESSION-DUPLICATE"),
        (409, 400, "U-SESSION-DUPLICATE"),
        (200, 409, "U-SESSION-DUPLICATE"),
        (200, 422, "U-SESSION-CREATE"),
    ],
)
def test_a_conflict_is_explained_by_what_is_created_twice(
    ours: int, theirs: int, unknown: str
) -> None:
    """Every creation relies on which fields it takes, and a second one on more."""
    relied = answer({}, ours, unknowns="U-SESSION-CREATE, U-SESSION-DUPLICATE")

    (found,) = differences(relied, answer({}, theirs), Pairs())

    assert unknown == found.because


def test_every_unknown_says_what_it_explains() -> None:
    """If it is nothing: one that is forgotten would make its alternatives diverge."""
    assert set(ledger.unknowns()) == explaining.unknowns()


def test_an_endpoint_may_be_empty() -> None:
    """The specification says so itself."""
    (found,) = differences(
        answer({"Result": {"Endpoint": ""}}), answer({"Result": {"Endpoint": "http://x"}}), Pairs()
    )

    assert "section 2.8" == found.because


def test_the_worst_class_counts() -> None:
    """Of no difference it is that all is the same."""
    assert Class.SAME is worst([])
    assert Class.DIVERGES is worst([Class.ASSUMED, Class.DIVERGES, Class.ONLY_LIVE])


def test_what_is_nested_too_deeply_is_a_text() -> None:
    """It is compared as one, instead of ending the comparison."""
    ours, theirs = (answer(b"[" * 500 + last + b"]" * 500) for last in (b"1", b"2"))

    (found,) = differences(ours, theirs, Pairs())

    assert ("value", "$") == (found.kind, found.path)
