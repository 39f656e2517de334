"""The start of sessions, polled and recovered as the platform's own clients do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import (
    act,
    act_on_session,
    body_of,
    call,
    error_of,
    http,
    refusal,
    run,
    send,
    sessions_of,
    signed,
    text,
    text_by_id,
)

TOOL = "t-sandbox"
MOST_POLLS = 5


@pytest.fixture(scope="module")
def _serving() -> Iterator[Emulator]:
    with Emulator(unknowns={"U-TOOL-SESSION-READY": "creating"}) as double:
        yield double


@pytest.fixture
def creating(_serving: Emulator) -> Emulator:
    """A double whose sessions start slowly, without any."""
    _serving.reset()
    return _serving


def create(double: Emulator, name: str = "u") -> dict[str, Any]:
    return act(double, "CreateSession", ToolId=TOOL, UserSessionId=name)


def get(double: Emulator, session_id: str) -> dict[str, Any]:
    return act_on_session(double, "GetSession", session_id)


def found(double: Emulator, name: str = "u") -> dict[str, Any]:
    """Return the only session with that UserSessionId."""
    filters = [{"Name": "UserSessionId", "Values": [name]}]
    (session,) = act(double, "ListSessions", ToolId=TOOL, Filters=filters)["SessionInfos"]
    assert isinstance(session, dict)
    return session


def poll(double: Emulator, session_id: str, last: str = "Ready") -> list[tuple[str, bool]]:
    """Ask until the Status is the last one; return each Status, and whether it had an Endpoint."""
    seen: list[tuple[str, bool]] = []
    while len(seen) < MOST_POLLS and (not seen or seen[-1][0] != last):
        session = get(double, session_id)
        seen.append((session["Status"], bool(session["Endpoint"])))
    return seen


STARTED = [("Creating", False), ("Starting", False), ("Ready", True)]


def test_created_session_is_polled_until_ready(creating: Emulator) -> None:
    """The Endpoint is empty until then; repeated creations do not go on."""
    session = create(creating)

    again = create(creating)
    seen = poll(creating, session["SessionId"])

    assert ["", ""] == [session["Endpoint"], again["Endpoint"]]
    assert STARTED == seen
    assert ("Ready", create(creating)["Endpoint"]) == (
        found(creating)["Status"],
        get(creating, session["SessionId"])["Endpoint"],
    )


def test_a_client_may_poll_the_list(creating: Emulator) -> None:
    """As clients do when CreateSession has failed although its session exists."""
    create(creating)

    listed = [found(creating) for _ in range(3)]

    assert STARTED == [(it["Status"], it["Endpoint"] != "") for it in listed]


def test_used_session_is_ready_at_once(creating: Emulator) -> None:
    created = create(creating)["SessionId"]
    text(creating, "1", "u")
    invoked = run(creating, "1", "other")["data"]["session_id"]

    assert [("Ready", True)] == poll(creating, created)
    assert [("Ready", True)] == poll(creating, invoked)


def test_data_plane_makes_session_ready(creating: Emulator) -> None:
    """Its token is not shown before."""
    session = create(creating)["SessionId"]
    living = sessions_of(creating).by_id(session)
    assert living is not None

    answer = http.get(
        f"{creating.url}/v1/sandbox",
        params={"faasInstanceName": session},
        headers={"Authorization": f"Bearer {living.token}"},
    )

    assert 200 == answer.status_code
    assert [("Ready", True)] == poll(creating, session)


def test_resumed_session_starts_again(creating: Emulator) -> None:
    """Both a copy and a session that lives again; its own state is replaced at once."""
    run(creating, "x = 41", "u")
    session = found(creating)["SessionId"]
    snapshot = act_on_session(creating, "CreateSessionSnapshot", session)["SnapshotId"]
    body = {"ToolId": TOOL, "SnapshotId": snapshot}

    copy = act(creating, "ResumeSessionFromSnapshot", **body, CreateNewInstance=True)["SessionId"]
    act(creating, "ResumeSessionFromSnapshot", **body)
    in_place = get(creating, session)["Status"]
    act_on_session(creating, "DeleteSession", session)
    again = act(creating, "ResumeSessionFromSnapshot", **body)["SessionId"]

    assert (STARTED, STARTED) == (poll(creating, copy), poll(creating, again))
    assert ("Ready", session) == (in_place, again)
    assert "42\n" == text_by_id(creating, "print(x + 1)", again)


def test_session_is_ready_at_once_by_default(double: Emulator) -> None:
    session = create(double)

    assert session["Endpoint"] == found(double)["Endpoint"] != ""
    assert [("Ready", True)] == poll(double, session["SessionId"])


def test_failed_creation_is_found_by_its_name(double: Emulator) -> None:
    """CreateSession fails although the session exists, and its code says so."""
    double.faults.arm(
        "fail", "CreateSession", status=500, code="ErrCreateSessionFail", after_execution=True
    )

    error = error_of(
        send(signed(double, {"ToolId": TOOL, "UserSessionId": "u"}, action="CreateSession"))
    )
    session = found(double)

    assert (500, "ErrCreateSessionFail") == (error["status"], error["Code"])
    assert ("Ready", True) == (session["Status"], bool(session["Endpoint"]))
    assert "3\n" == text_by_id(double, "print(1 + 2)", session["SessionId"])


def test_session_fails_to_start(double: Emulator) -> None:
    """Code, data plane and snapshots are refused until it is deleted."""
    fault = double.faults.arm("fail_start", "CreateSession")

    session = create(double)
    seen = poll(double, session["SessionId"], last="Failed")
    refused = error_of(call(double, body_of(double, "1", "u")))
    in_bash = error_of(call(double, body_of(double, "true", "u", language="bash")))
    snapshot = refusal(double, "CreateSessionSnapshot", ToolId=TOOL, SessionId=session["SessionId"])
    again = create(double)

    assert "" == session["Endpoint"]
    assert [("Creating", False), ("Failed", False)] == seen
    assert (409, "InvalidResource.Failed") == (refused["status"], refused["Code"])
    assert "delete it, or use another UserSessionId" in refused["Message"]
    assert refused["Code"] == in_bash["Code"]
    assert (409, "InvalidSnapshot.InstanceFailed") == snapshot[:2]
    assert session == again
    assert 1 == double.faults.wait(fault.id).fired
    act_on_session(double, "DeleteSession", session["SessionId"])
    assert "1\n" == text(double, "print(1)", "u")


def test_living_session_does_not_fail_to_start(double: Emulator) -> None:
    """The fault does not happen."""
    session = create(double)
    fault = double.faults.arm("fail_start", "CreateSession")

    assert session == create(double)

    assert 0 == double.faults.wait(fault.id, fired=0).fired
    double.faults.clear()


def test_failed_session_leaves_no_snapshot(double: Emulator) -> None:
    """Its tool takes one of every other session that expires."""
    double.faults.arm("fail_start", "CreateSession")
    create(double)
    double.clock.advance(hours=1)

    assert [] == act(double, "ListSessions", ToolId=TOOL)["SessionInfos"]
    assert [] == act(double, "ListSessionSnapshots", ToolId=TOOL)["Snapshots"]
