from __future__ import annotations

import json
from typing import Any

import pytest

from agentdouble.core import ledger
from agentdouble.core.diff.pairs import Pairs
from doublecheck.compare.differences import Class
from doublecheck.compare.explaining import differences
from doublecheck.wire.calls import Request
from doublecheck.wire.exchanges import Exchange

pytestmark = pytest.mark.smoke

JSON = "application/json"
INVOKE, RUN_CODE, SESSIONS = "POST /invoke", "InvokeTool RunCode", "GET /apps/{app}/users/{user}"


def answer(document: Any, status: int = 200, unknowns: str = "", request: str = "") -> Exchange:
    headers = {"content-type": JSON, "x-agentdouble-unknowns": unknowns}
    sent = Request("POST", "http://x", {}, request.encode())
    return Exchange(sent, status, headers, json.dumps(document).encode())


def result(**fields: Any) -> dict[str, Any]:
    inner = {"success": True, "message": "done", "data": {"status": "ok"}, **fields}
    return {"Result": {"SessionId": "s-1a2b3c4d", "Result": json.dumps(inner)}}


def classes(double: Exchange, live: Exchange, operation: str) -> list[tuple[str, Class]]:
    found_differences = differences(double, live, Pairs(), operation)
    return [(difference.path, difference.cls) for difference in found_differences]


def test_every_unknown_declares_what_it_explains() -> None:
    """The only exceptions are unknowns that state why no answer shows them."""
    undeclared = [
        unknown.id
        for unknown in ledger.unknowns().values()
        if bool(unknown.explains) == bool(unknown.not_visible)
        or any(not (effect.operations and effect.paths) for effect in unknown.explains)
    ]

    assert [] == undeclared


@pytest.mark.parametrize(
    ("operation", "double", "live", "expected"),
    [
        (INVOKE, "a", {"response": "a"}, [("$", Class.ASSUMED)]),
        (INVOKE, {"a": 1}, {"response": {"a": 1}}, [("$", Class.ASSUMED)]),
        (
            INVOKE,
            "a",
            {"response": "b"},
            [("$", Class.ASSUMED), ("$.response", Class.DIVERGES)],
        ),
        (INVOKE, "a", "b", [("$", Class.DIVERGES)]),
        (INVOKE, "a", {"answer": "a"}, [("$", Class.DIVERGES)]),
        ("GET /list-apps", ["a"], {"apps": [{"name": "a"}]}, [("$", Class.ASSUMED)]),
        (
            "GET /list-apps",
            ["a"],
            {"apps": [{"name": "b"}]},
            [("$", Class.ASSUMED), ("$.apps[*].name[0]", Class.DIVERGES)],
        ),
        ("POST /run", "a", {"response": "a"}, [("$", Class.DIVERGES)]),
    ],
)
def test_an_envelope_is_explained_and_its_content_compared(
    operation: str, double: Any, live: Any, expected: list[tuple[str, Class]]
) -> None:
    unknowns = "U-INVOKE-ENVELOPE, U-LIST-APPS"

    found_classes = classes(answer(double, unknowns=unknowns), answer(live), operation)

    assert expected == found_classes


@pytest.mark.parametrize(
    ("double_status", "live_status", "expected"),
    [
        (409, 200, "U-SESSION-DUPLICATE"),
        (409, 400, "U-SESSION-DUPLICATE"),
        (200, 409, "U-SESSION-DUPLICATE"),
        (200, 422, "U-SESSION-CREATE"),
        (409, 503, None),
        (409, 404, None),
        (200, 500, None),
    ],
)
def test_a_status_is_explained_if_both_values_are_alternatives(
    double_status: int, live_status: int, expected: str | None
) -> None:
    unknowns = "U-SESSION-CREATE, U-SESSION-DUPLICATE"
    relied = answer({}, double_status, unknowns, request='{"state": 1}')
    operation = "POST /apps/{app}/users/{user}/sessions"

    (difference,) = differences(relied, answer({}, live_status), Pairs(), operation)

    assert expected == difference.because


@pytest.mark.parametrize(
    "lie",
    [
        {"success": False},
        {"message": "THE WRONG ANSWER"},
        {"data": {"status": "banana"}},
        {"data": {"status": "ok", "outputs": []}},
    ],
)
def test_unknowns_of_every_session_do_not_explain_a_wrong_result(lie: dict[str, Any]) -> None:
    """Every use of a session relies on these, from its second execution on."""
    unknowns = "U-TTL-EXTENDS, U-TTL-REPEATED, U-INVOKETOOL-WIRE, U-EXEC-LIMITS, U-SIGNING"

    found_classes = classes(answer(result(), unknowns=unknowns), answer(result(**lie)), RUN_CODE)

    assert found_classes
    assert Class.ASSUMED not in {cls for _, cls in found_classes}


def test_exec_success_explains_only_the_success_field_of_an_error() -> None:
    error = {"data": {"status": "error"}}
    double_answer = answer(result(success=False, **error), unknowns="U-EXEC-SUCCESS")

    assert [("$.Result.Result.success", Class.ASSUMED)] == classes(
        double_answer, answer(result(success=True, **error)), RUN_CODE
    )
    assert [
        ("$.Result.Result.success", Class.ASSUMED),
        ("$.Result.Result.data.status", Class.DIVERGES),
    ] == classes(double_answer, answer(result(success=True)), RUN_CODE)
    assert [("$.Result.Result.success", Class.DIVERGES)] == classes(
        double_answer, answer(result(success="no", **error)), RUN_CODE
    )


@pytest.mark.parametrize(
    ("double", "live", "expected"),
    [
        ({"id": "a1"}, {}, Class.ONLY_DOUBLE),
        ({"state": {}}, {}, Class.ASSUMED),
        ({"state": {"a": 1}}, {"state": {"a": 2}}, Class.DIVERGES),
        ({"userId": "a"}, {"userId": "b"}, Class.DIVERGES),
        ({"events": []}, {}, Class.ONLY_DOUBLE),
        ({}, {"more": 1}, Class.ONLY_LIVE),
    ],
)
def test_an_optional_field_may_be_missing_but_not_different(
    double: Any, live: Any, expected: Class
) -> None:
    """The id and the history of a session are required."""
    operation = "GET /apps/{app}/users/{user}/sessions/{session}"
    relied = answer(double, unknowns="U-SESSION-FIELDS, U-EVENT-FIELDS")

    ((_, cls),) = classes(relied, answer(live), operation)

    assert expected is cls


@pytest.mark.parametrize(
    ("double", "live", "expected"),
    [
        ((401, "MissingAuthenticationToken"), 200, Class.DIVERGES),
        ((401, "MissingAuthenticationToken"), 403, Class.ASSUMED),
        ((401, "MissingAuthenticationToken"), 500, Class.DIVERGES),
        ((403, "AccessDenied"), 200, Class.DIVERGES),
        ((200, None), 401, Class.DIVERGES),
    ],
)
def test_only_the_form_of_a_signature_refusal_is_explained(
    double: tuple[int, str | None], live: int, expected: Class
) -> None:
    """Accepting an unsigned request or refusing a signed one diverges."""
    status, code = double
    document = {"Result": {}} if code is None else {"ResponseMetadata": {"Error": {"Code": code}}}

    ((path, cls),) = classes(
        answer(document, status, unknowns="U-SIGNING, U-ERROR-SHAPE"), answer({}, live), RUN_CODE
    )

    assert ("status", expected) == (path, cls)


def test_only_unknowns_that_the_answer_names_explain_differences() -> None:
    assert [("$", Class.DIVERGES)] == classes(answer("a"), answer({"response": "a"}), INVOKE)


def test_reordered_events_are_not_explained_as_missing_fields() -> None:
    final, partial = {"content": {}}, {"content": {}, "partial": True}
    relied = answer([partial, final], unknowns="U-EVENT-FIELDS")

    assert [("$[0].partial", Class.ASSUMED)] == classes(relied, answer([final, final]), "POST /run")
    assert [("$[0].partial", Class.ONLY_DOUBLE), ("$[1].partial", Class.ONLY_LIVE)] == classes(
        relied, answer([final, {**partial, "partial": 1}]), "POST /run"
    )
