from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from agentdouble import SimpleApp
from agentdouble.core import ledger
from agentdouble.core.diff.pairs import Pairs
from doublecheck import Platform, Target
from doublecheck.client.doubles import serving_double
from doublecheck.compare.alternatives import DoubleAnswers, Recorded
from doublecheck.compare.conversation import Talk, Topic
from doublecheck.compare.differences import Class, Difference
from doublecheck.compare.explaining import differences
from doublecheck.compare.run import run
from doublecheck.wire.calls import Request
from doublecheck.wire.exchanges import Exchange
from tests.doublecheck.compare.liar import Lie, seen_as_live, serving_liar

JSON = "application/json"
RUN_CODE = "InvokeTool RunCode"


def answer(document: Any, status: int = 200, unknowns: str = "", request: str = "") -> Exchange:
    headers = {"content-type": JSON, "x-agentdouble-unknowns": unknowns}
    sent = Request("POST", "http://x", {}, request.encode())
    return Exchange(sent, status, headers, json.dumps(document).encode())


def result(**fields: Any) -> dict[str, Any]:
    inner = {"success": True, "message": "done", "data": {"status": "ok"}, **fields}
    return {"Result": {"SessionId": "s-1a2b3c4d", "Result": json.dumps(inner)}}


def declared(double: Exchange, live: Exchange, operation: str) -> tuple[Difference, ...]:
    """Return the differences, which no experiment explains: nothing was asked."""
    answers = DoubleAnswers(Target("http://x", "live"))
    return differences(answers, Recorded(double), live, Pairs(), operation)


def classes(double: Exchange, live: Exchange, operation: str) -> list[tuple[str, Class]]:
    found_differences = declared(double, live, operation)
    return [(difference.path, difference.cls) for difference in found_differences]


def test_every_unknown_can_be_explained() -> None:
    """By an alternative or by what it declares; the only exceptions state why no answer shows them."""
    open_unknowns = [
        unknown.id
        for unknown in ledger.unknowns().values()
        if (
            not (any(it.built for it in unknown.alternatives) or unknown.explains)
            and not unknown.not_visible
        )
        or any(not (effect.operations and effect.paths) for effect in unknown.explains)
    ]

    assert [] == open_unknowns


@pytest.mark.parametrize(
    ("double_status", "live_status", "expected"),
    [
        (200, 422, "U-SESSION-CREATE"),
        (409, 503, None),
        (409, 404, None),
        (200, 500, None),
    ],
)
def test_a_status_is_explained_if_both_values_are_declared(
    double_status: int, live_status: int, expected: str | None
) -> None:
    unknowns = "U-SESSION-CREATE, U-SESSION-DUPLICATE"
    relied = answer({}, double_status, unknowns, request='{"state": 1}')
    operation = "POST /apps/{app}/users/{user}/sessions"

    (difference,) = declared(relied, answer({}, live_status), operation)

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
    operation = "GET /apps/{app}/users/{user}/sessions/{session}"

    assert [("$.state", Class.ONLY_DOUBLE)] == classes(answer({"state": {}}), answer({}), operation)


def test_reordered_events_are_not_explained_as_missing_fields() -> None:
    final, partial = {"content": {}}, {"content": {}, "partial": True}
    relied = answer([partial, final], unknowns="U-EVENT-FIELDS")

    assert [("$[0].partial", Class.ASSUMED)] == classes(relied, answer([final, final]), "POST /run")
    assert [("$[0].partial", Class.ONLY_DOUBLE), ("$[1].partial", Class.ONLY_LIVE)] == classes(
        relied, answer([final, {**partial, "partial": 1}]), "POST /run"
    )


def saying(side: str) -> SimpleApp:
    """Return an application that answers what the request has for its side."""
    app = SimpleApp()

    @app.entrypoint
    async def answer(payload: dict[str, Any], _headers: dict[str, str]) -> Any:
        return payload[side]

    return app


@pytest.fixture(scope="module")
def asked() -> Iterator[Target]:
    with serving_double(saying("double")) as target:
        yield target


def experiments(
    asked: Target, talk: Talk, unknowns: Mapping[str, str] | None = None, lie: Lie | None = None
) -> list[tuple[str, str | None]]:
    """Return the places that differ on a platform with other answers, and what explains each."""
    with (
        serving_double(saying("live"), unknowns=dict(unknowns or {})) as target,
        serving_liar(target.url) as liar,
        liar.lying(lie or (lambda *_: None)),
        Platform(asked) as double,
        Platform(seen_as_live(target, liar)) as live,
    ):
        topic = Topic("calls", (), talk, does="runs code")
        comparison = run([topic], double, live, allow_writes=True)
    return [(it.path, it.because) for call in comparison.calls for it in call.differences]


IN_ENVELOPE = "U-INVOKE-ENVELOPE = object"


@pytest.mark.parametrize(
    ("double", "live", "expected"),
    [
        ("a", {"response": "a"}, [("$", IN_ENVELOPE)]),
        ({"a": 1}, {"response": {"a": 1}}, [("$.a", IN_ENVELOPE), ("$.response", IN_ENVELOPE)]),
        ("a", {"response": "b"}, [("$", IN_ENVELOPE), ("$.response", None)]),
        ("a", "b", [("$", None)]),
        ("a", {"answer": "a"}, [("$", None)]),
        ("a" * 70_000, {"response": "a" * 70_000}, [("$", None)]),
    ],
    ids=["text", "object", "other text", "no envelope", "other envelope", "too long to repeat"],
)
def test_an_alternative_explains_what_becomes_equal(
    asked: Target, double: Any, live: Any, expected: list[tuple[str, str | None]]
) -> None:
    """The rest diverges, and so does everything if the journal lacks a part of the request."""
    content = json.dumps({"double": double, "live": live}).encode()
    headers = {"Content-Type": JSON}

    found = experiments(
        asked, lambda it: it.request("POST", "/invoke", headers=headers, content=content)
    )

    assert expected == found


def create_twice(platform: Platform) -> None:
    path = "/apps/echo/users/u1/sessions/twice"
    for method in ("POST", "POST", "DELETE"):
        platform.request(method, path)


@pytest.mark.parametrize(
    ("status", "expected"), [(400, "U-SESSION-DUPLICATE = 400"), (503, None), (404, None)]
)
def test_a_status_is_explained_by_an_alternative_that_has_it(
    asked: Target, status: int, expected: str | None
) -> None:
    creation = "POST /apps/{app}/users/{user}/sessions/{session}"

    def lie(name: str, nth: int, _document: Any) -> Any:
        return status if (name, nth) == (creation, 2) else None

    assert [("status", expected)] == experiments(asked, create_twice, lie=lie)


def test_several_unknowns_explain_one_answer(asked: Target) -> None:
    unknowns = {"U-SESSION-DUPLICATE": "existing", "U-SESSION-FIELDS": "id-only"}

    reasons = {because for _, because in experiments(asked, create_twice, unknowns)}

    assert {"U-SESSION-DUPLICATE = existing", "U-SESSION-FIELDS = id-only"} == reasons


def test_the_stages_of_a_session_s_start_are_explained(asked: Target) -> None:
    """Those of its creation, of GetSession and of ListSessions, which is a stage further."""

    def talk(platform: Platform) -> None:
        sandbox = platform.sandbox(session_id="starts")
        tool = {"ToolId": platform.target.sandbox_tool()}
        named = {**tool, "UserSessionId": sandbox.user_session_id}
        session = platform._act("CreateSession", named, lambda result: result["SessionId"])
        platform._act("GetSession", {**tool, "SessionId": session}, dict)
        platform._act("ListSessions", tool, dict)
        sandbox.destroy()

    found = experiments(asked, talk, {"U-TOOL-SESSION-READY": "creating"})

    assert {"$.Result.Endpoint", "$.Result.Status"} <= {path for path, _ in found}
    by = "U-TOOL-SESSION-READY"
    assert {by, f"{by} = creating"} == {because for _, because in found}


@pytest.mark.slow
def test_a_wrong_result_is_not_explained_with_the_success_of_an_error(asked: Target) -> None:
    def lie(name: str, _nth: int, document: Any) -> Any:
        if name != RUN_CODE:
            return None
        inner = json.loads(document["Result"]["Result"])
        inner["data"]["status"] = "ok"
        document["Result"]["Result"] = json.dumps(inner)
        return document

    found = experiments(
        asked, lambda it: it.run_code("1/0", session_id="a"), {"U-EXEC-SUCCESS": "true"}, lie
    )

    assert [
        ("$.Result.Result.success", "U-EXEC-SUCCESS = true"),
        ("$.Result.Result.data.status", None),
    ] == found
