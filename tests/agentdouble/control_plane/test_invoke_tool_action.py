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
    """Return how a valid body with these changes is refused."""
    body = {**body_of(double, "1", "refused"), **changes}
    error = error_of(call(double, {k: v for k, v in body.items() if v is not DROPPED}))
    return error["status"], error["Code"], error["Message"]


def refused_payload(double: Emulator, **changes: Any) -> tuple[int, str, str]:
    """Return how a valid OperationPayload with these changes is refused."""
    payload = {"code": "1", "kernel_name": "python3", **changes}
    sent = {k: v for k, v in payload.items() if v is not DROPPED}
    return refused(double, OperationPayload=json.dumps(sent))


@pytest.fixture(autouse=True)
def _nothing_is_made(shared: Emulator) -> Any:
    """Check that a refused request creates no instance."""
    yield
    sessions = http.get(f"{shared.url}/_emulator/sessions").json()["sessions"]
    assert "refused" not in {session["UserSessionId"] for session in sessions}


def test_unknown_tool_is_refused(shared: Emulator) -> None:
    """CTL-04: the error names the tool."""
    assert (
        404,
        "InvalidResource.NotFound",
        "There is no tool 't-other'; this double has 't-sandbox'.",
    ) == refused(shared, ToolId="t-other")


@pytest.mark.parametrize("field", ["ToolId", "UserSessionId"])
def test_missing_fields_are_named(shared: Emulator, field: str) -> None:
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
        ("OperationPayload", r'{"code": "\ud800"}'),
        ("Ttl", -1),
    ],
    ids=lambda value: str(value)[:20],
)
def test_invalid_fields_are_named(shared: Emulator, field: str, value: object) -> None:
    status, code, message = refused(shared, **{field: value})

    assert (400, "InvalidParameter") == (status, code)
    assert message.startswith(f"The parameter {field} is invalid: ")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("code", ""),
        ("code", "x" * (1024 * 1024 + 1)),
        ("code", "1\x00"),
        ("timeout", 301),
        ("kernel_name", 3),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_invalid_payload_fields_are_named(shared: Emulator, field: str, value: object) -> None:
    status, code, message = refused_payload(shared, **{field: value})

    assert (400, "InvalidParameter") == (status, code)
    assert message.startswith(f"The parameter OperationPayload.{field} is invalid: ")


def test_unknown_language_error_lists_the_languages(shared: Emulator) -> None:
    languages = "python3, python, javascript, js, node, typescript"
    assert (
        400,
        "InvalidParameter",
        f"Unknown language 'cobol'. Supported: {languages}.",
    ) == refused_payload(shared, kernel_name="cobol")


@pytest.mark.parametrize("value", ["", "../x", "a" * 201], ids=lambda value: repr(value)[:12])
def test_user_session_id_with_other_characters_is_refused(shared: Emulator, value: str) -> None:
    """1 to 200 letters, digits, _ and -, as in the public client (U-USER-SESSION-CHARS)."""
    status, code, message = refused(shared, UserSessionId=value)

    assert (400, "InvalidParameter") == (status, code)
    assert message.startswith("The parameter UserSessionId is invalid: ")
    assert "U-USER-SESSION-CHARS" in message


def test_user_session_id_may_have_200_characters(shared: Emulator) -> None:
    longest = "aZ09_-" * 33 + "ab"

    assert longest == result(shared, "1", longest)["UserSessionId"]


@pytest.mark.parametrize("name", ["python3", "Python"])
def test_names_of_python(shared: Emulator, name: str) -> None:
    """All names share one kernel, and the answer repeats the requested name."""
    inner = run(shared, "print(1)", "plain", language=name)

    assert (True, name) == (inner["success"], inner["data"]["kernel_name"])


def test_ttl_may_be_a_numeric_string(shared: Emulator) -> None:
    """Some real clients send the string from their environment."""
    body = {**body_of(shared, "1", "plain"), "Ttl": "1800"}

    assert 200 == call(shared, body).status_code


def test_session_id_reaches_the_same_instance(shared: Emulator) -> None:
    """SessionId replaces UserSessionId, and the answer names the instance."""
    first = result(shared, "x = 1", "by-id")
    body = {**body_of(shared, "print(x)"), "SessionId": first["SessionId"]}
    del body["UserSessionId"]

    second = call(shared, body).json()["Result"]

    assert (first["SessionId"], "by-id") == (second["SessionId"], second["UserSessionId"])
    assert "1\n" == json.loads(second["Result"])["data"]["outputs"][0]["text"]


def test_session_id_of_an_ended_instance_is_refused(double: Emulator) -> None:
    """The error differs from the one for an unknown session."""
    first = result(double, "1", "ended")
    double.clock.advance(dt.timedelta(minutes=30))
    body = {**body_of(double, "1"), "SessionId": first["SessionId"]}
    del body["UserSessionId"]

    error = error_of(call(double, body))

    assert (404, "InvalidResource.NotFound") == (error["status"], error["Code"])
    assert f"{first['SessionId']!r} has ended: expired at " in error["Message"]


@pytest.mark.slow
def test_instance_limit_refuses_new_sessions() -> None:
    """Existing sessions keep working."""
    with Emulator(max_instances=1) as double:
        run(double, "1", "first")
        error = error_of(call(double, body_of(double, "1", "second")))
        again = run(double, "1", "first")

    assert (429, "QuotaExceeded") == (error["status"], error["Code"])
    assert again["success"]


@pytest.mark.slow
def test_aliases_can_be_disabled() -> None:
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
