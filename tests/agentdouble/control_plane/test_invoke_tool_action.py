from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import body_of, call, error_of, http, result, run

pytestmark = pytest.mark.smoke

DROPPED = object()


def refused(double: Emulator, **changes: Any) -> tuple[int, str, str]:
    """Return how a body is refused that is good but for these changes."""
    body = {**body_of(double, "1", "refused"), **changes}
    error = error_of(call(double, {k: v for k, v in body.items() if v is not DROPPED}))
    return error["status"], error["Code"], error["Message"]


def refused_payload(double: Emulator, **changes: Any) -> tuple[int, str, str]:
    """Return how an OperationPayload is refused that is good but for these changes."""
    payload = {"code": "1", "kernel_name": "python3", **changes}
    sent = {k: v for k, v in payload.items() if v is not DROPPED}
    return refused(double, OperationPayload=json.dumps(sent))


@pytest.fixture(autouse=True)
def _nothing_is_made(shared: Emulator) -> Any:
    """A request that is refused makes no instance."""
    yield
    sessions = http.get(f"{shared.url}/_emulator/sessions").json()["sessions"]
    assert "refused" not in {session["UserSessionId"] for session in sessions}


def test_an_unknown_tool_is_refused(shared: Emulator) -> None:
    """CTL-04: the tool is named."""
    assert (
        404,
        "InvalidResource.NotFound",
        "There is no tool 't-other'; this double has 't-sandbox'.",
    ) == refused(shared, ToolId="t-other")


@pytest.mark.parametrize("field", ["ToolId", "UserSessionId"])
def test_a_missing_field_is_named(shared: Emulator, field: str) -> None:
    """The message says which field is missing."""
    assert (400, "MissingParameter", f"The request is missing {field} parameter.") == refused(
        shared, **{field: DROPPED}
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ToolId", 1),
        ("OperationType", "runcode"),
        ("OperationPayload", None),
        ("OperationPayload", '"1"'),
        ("Ttl", -1),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_wrong_field_is_named(shared: Emulator, field: str, value: object) -> None:
    """A wrong type or value is refused, and the message says of which field."""
    status, code, message = refused(shared, **{field: value})

    assert (400, "InvalidParameter") == (status, code)
    assert message.startswith(f"The parameter {field} is invalid: ")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("code", ""),
        ("code", "x" * (1024 * 1024 + 1)),
        ("code", "'\ud800'"),
        ("code", "1\x00"),
        ("timeout", 301),
        ("kernel_name", 3),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_wrong_field_of_the_payload_is_named(shared: Emulator, field: str, value: object) -> None:
    """The message says of which field of OperationPayload."""
    status, code, message = refused_payload(shared, **{field: value})

    assert (400, "InvalidParameter") == (status, code)
    assert message.startswith(f"The parameter OperationPayload.{field} is invalid: ")


def test_an_unknown_language_names_the_known(shared: Emulator) -> None:
    """The message lists the languages."""
    languages = "python3, python, javascript, js, node, typescript"
    assert (
        400,
        "InvalidParameter",
        f"Unknown language 'cobol'. Supported: {languages}.",
    ) == refused_payload(shared, kernel_name="cobol")


@pytest.mark.parametrize("value", ["", "../x", "a" * 201], ids=lambda value: repr(value)[:12])
def test_a_session_id_of_other_characters_is_refused(shared: Emulator, value: str) -> None:
    """1 to 200 letters, digits, _ and -, as the public client has it (U-USER-SESSION-CHARS)."""
    status, code, message = refused(shared, UserSessionId=value)

    assert (400, "InvalidParameter") == (status, code)
    assert message.startswith("The parameter UserSessionId is invalid: ")
    assert "U-USER-SESSION-CHARS" in message


def test_a_session_id_may_have_200_characters(shared: Emulator) -> None:
    """The longest that is allowed works."""
    longest = "aZ09_-" * 33 + "ab"

    assert longest == result(shared, "1", longest)["UserSessionId"]


@pytest.mark.parametrize("name", ["python3", "Python"])
def test_python_has_these_names(shared: Emulator, name: str) -> None:
    """One kernel answers to each, and the answer has the name that was asked for."""
    inner = run(shared, "print(1)", "plain", language=name)

    assert (True, name) == (inner["success"], inner["data"]["kernel_name"])


def test_a_numeric_string_is_a_ttl(shared: Emulator) -> None:
    """Some real clients send their environment's string."""
    body = {**body_of(shared, "1", "plain"), "Ttl": "1800"}

    assert 200 == call(shared, body).status_code


def test_a_session_is_reached_by_its_session_id_too(shared: Emulator) -> None:
    """SessionId instead of UserSessionId: the same instance, named in the answer."""
    first = result(shared, "x = 1", "by-id")
    body = {**body_of(shared, "print(x)"), "SessionId": first["SessionId"]}
    del body["UserSessionId"]

    second = call(shared, body).json()["Result"]

    assert (first["SessionId"], "by-id") == (second["SessionId"], second["UserSessionId"])
    assert "1\n" == json.loads(second["Result"])["data"]["outputs"][0]["text"]


def test_the_session_id_of_an_ended_instance_says_so(double: Emulator) -> None:
    """What is gone is told from what never was."""
    first = result(double, "1", "ended")
    double.clock.advance(dt.timedelta(minutes=30))
    body = {**body_of(double, "1"), "SessionId": first["SessionId"]}
    del body["UserSessionId"]

    error = error_of(call(double, body))

    assert (404, "InvalidResource.NotFound") == (error["status"], error["Code"])
    assert f"{first['SessionId']!r} has ended: expired at " in error["Message"]


@pytest.mark.slow
def test_too_many_instances_are_refused() -> None:
    """At the limit the next session is refused, and a living one goes on."""
    with Emulator(max_instances=1) as double:
        run(double, "1", "first")
        error = error_of(call(double, body_of(double, "1", "second")))
        again = run(double, "1", "first")

    assert (429, "QuotaExceeded") == (error["status"], error["Code"])
    assert again["success"]


def test_a_kernel_that_does_not_start_is_an_error() -> None:
    """The answer says what was seen."""
    with Emulator(preload=("no_such_module",), pool_size=0) as double:
        error = error_of(call(double, body_of(double, "1")))

    assert (500, "ErrCreateSessionFail") == (error["status"], error["Code"])
    assert "no_such_module" in error["Message"]


@pytest.mark.slow
def test_no_aliases_where_the_ledger_says_so() -> None:
    """U-KERNEL-NAMES two-names: each language has one name."""
    with Emulator(unknowns={"U-KERNEL-NAMES": "two-names"}) as double:
        refusals = {refused_payload(double, kernel_name=n) for n in ("python", "js")}
        inner = [run(double, "1", language=name) for name in ("python3", "javascript")]

    assert {
        (
            400,
            "InvalidParameter",
            f"Unknown language {name!r}. Supported: python3, javascript.",
        )
        for name in ("python", "js")
    } == refusals
    assert [True, True] == [result["success"] for result in inner]
