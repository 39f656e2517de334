from __future__ import annotations

import json
from typing import Any

import pytest

from doublecheck.comparing.answers import Answer, differences
from doublecheck.comparing.references import Pairs
from doublecheck.comparing.requests import Request, learn

pytestmark = pytest.mark.smoke

RUN_CODE = "InvokeTool RunCode"


def request(url: str = "http://x/", **document: Any) -> Request:
    return Request(url, {}, json.dumps(document).encode())


def answer(**document: Any) -> Answer:
    body = json.dumps(document).encode()
    return Answer(200, {"content-type": "application/json"}, body)


@pytest.mark.parametrize("field", ["UserSessionId", "ToolId"])
def test_an_answer_is_about_what_was_asked_for(field: str) -> None:
    """Also if both sides were asked for the same name."""
    pairs = Pairs()
    learn(request(**{field: "a1"}), request(**{field: "a1"}), pairs)
    right, wrong = answer(Result={field: "a1"}), answer(Result={field: "b2"})

    assert () == differences(right, right, pairs, RUN_CODE)
    (found,) = differences(right, wrong, pairs, RUN_CODE)
    assert (f"$.Result.{field}", "a1", "b2") == (found.path, found.double, found.live)


def test_other_names_of_the_same_thing_are_matched() -> None:
    """In the path of a request as in its body."""
    pairs = Pairs()
    learn(request("http://x/sessions/d1"), request("http://y/sessions/l1"), pairs)
    operation = "POST /apps/{app}/users/{user}/sessions/{session}"

    assert () == differences(answer(id="d1"), answer(id="l1"), pairs, operation)
    (found,) = differences(answer(id="d1"), answer(id="l2"), pairs, operation)
    assert ("$.id", "l2") == (found.path, found.live)


def test_an_answer_repeats_the_number_of_its_request() -> None:
    """Numbers of several clients may meet."""
    pairs = Pairs()
    for ours, theirs in ((5, 8), (8, 8), (8, 5)):
        learn(request(id=ours), request(id=theirs), pairs)
        assert () == differences(answer(id=ours), answer(id=theirs), pairs, "/mcp tools/list")

    (found,) = differences(answer(id=8), answer(id=6), pairs, "/mcp tools/list")
    assert ("$.id", 8, 6) == (found.path, found.double, found.live)
