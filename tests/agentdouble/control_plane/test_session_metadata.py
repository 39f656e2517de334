"""The Metadata of sessions, as a client sends and reads it that separates owners."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import act, refusal, result

TOOL = "t-sandbox"
ANN = {"Key": "Username", "Type": "String", "Value": "ann"}
BOB = {"Key": "Username", "Type": "String", "Value": "bob"}
TITLE = {"Key": "veadk_display_name", "Type": "String", "Value": "Überblick"}


def create(double: Emulator, name: str, *metadata: dict[str, str]) -> str:
    body = {"ToolId": TOOL, "UserSessionId": name, "Metadata": list(metadata)}
    session_id: str = act(double, "CreateSession", **body)["SessionId"]
    return session_id


def owned(double: Emulator, *wanted: dict[str, str], **query: Any) -> list[str]:
    """Return the user sessions that a filtered list shows."""
    listed = act(double, "ListSessions", ToolId=TOOL, Metadata=list(wanted), **query)
    return [session["UserSessionId"] for session in listed["SessionInfos"]]


def test_list_shows_an_owner_only_their_own_sessions(double: Emulator) -> None:
    """The filter needs no Type; a session without metadata belongs to nobody."""
    create(double, "of-ann", ANN, TITLE)
    create(double, "of-bob", BOB)
    result(double, "1", "of-nobody")
    wanted = {"Key": "Username", "Value": "ann"}

    listed = act(double, "ListSessions", ToolId=TOOL, MaxResults=100, Metadata=[wanted])

    (session,) = listed["SessionInfos"]
    assert ("of-ann", [ANN, TITLE]) == (session["UserSessionId"], session["Metadata"])
    assert ["of-bob"] == owned(double, BOB)
    assert ["of-ann", "of-bob", "of-nobody"] == owned(double)


def test_every_given_key_must_match(double: Emulator) -> None:
    """A part of a value is not enough."""
    create(double, "both", ANN, TITLE)
    create(double, "one", ANN)

    assert ["both"] == owned(double, ANN, TITLE)
    assert ["both", "one"] == owned(double, ANN)
    assert [] == owned(double, BOB, TITLE)
    assert [] == owned(double, {"Key": "Username", "Value": "an"})
    assert ["both"] == owned(double, ANN, Filters=[{"Name": "UserSessionId", "Values": ["both"]}])


def test_session_shows_its_metadata(double: Emulator) -> None:
    """A session that InvokeTool made has none."""
    made = create(double, "made", TITLE, ANN)
    invoked = result(double, "1", "invoked")["SessionId"]

    shown = [
        act(double, "GetSession", ToolId=TOOL, SessionId=session_id)["Metadata"]
        for session_id in (made, invoked)
    ]

    assert [[TITLE, ANN], []] == shown


def test_living_session_keeps_its_metadata(double: Emulator) -> None:
    """Metadata of a later CreateSession is listed as unread."""
    first = create(double, "u", ANN)

    assert first == create(double, "u", BOB)

    assert ["Metadata"] == double.journal.entries()[-1].unread
    assert ["u"] == owned(double, ANN)
    assert [] == owned(double, BOB)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ([{"Key": "k", "Value": "v" * 64}], "Metadata.0.Value is invalid: it has 64 bytes"),
        ([{"Key": "k", "Value": "é" * 32}], "Metadata.0.Value is invalid: it has 64 bytes"),
        ([ANN, BOB], "Metadata is invalid: the Key 'Username' occurs twice"),
        ([{"Key": "", "Value": "v"}], "Metadata.0.Key is invalid: "),
        ([{"Key": "k", "Type": "Int", "Value": "1"}], "Metadata.0.Type is invalid: "),
        ([{"Key": "k", "Value": 1}], "Metadata.0.Value is invalid: "),
        ({"Key": "k", "Value": "v"}, "Metadata is invalid: "),
    ],
)
def test_invalid_metadata_is_refused(double: Emulator, metadata: Any, reason: str) -> None:
    """No session is created, and no list is answered."""
    for action in ("CreateSession", "ListSessions"):
        status, code, message = refusal(double, action, ToolId=TOOL, Metadata=metadata)

        assert (400, "InvalidParameter") == (status, code)
        assert f"The parameter {reason}" in message
    assert [] == owned(double)


def test_value_may_have_63_bytes(double: Emulator) -> None:
    """They are bytes of UTF-8, not characters."""
    longest = {"Key": "k", "Type": "String", "Value": "é" * 31 + "."}

    create(double, "u", longest)

    assert ["u"] == owned(double, longest)


def test_ended_session_has_its_metadata_after_a_restart(tmp_path: Path) -> None:
    """The state keeps it with the session's record."""
    options: dict[str, Any] = {
        "state": f"sqlite:///{tmp_path / 'state.db'}",
        "unknowns": {"U-TOOL-SESSION-ENDED": "terminated"},
    }
    with Emulator(**options) as double:
        create(double, "deleted", ANN)
        act(double, "DeleteSession", SessionId=create(double, "other", BOB))
        assert ["other"] == owned(double, BOB)

    with Emulator(**options) as double:
        assert ["deleted"] == owned(double, ANN)
        assert ["other"] == owned(double, BOB)


@pytest.mark.needs("files", "pid_namespace")
def test_snapshot_remembers_metadata(double: Emulator) -> None:
    """A session that is made from it has it again."""
    source = create(double, "u", ANN, TITLE)
    snapshot = act(double, "CreateSessionSnapshot", ToolId=TOOL, SessionId=source)["SnapshotId"]
    body = {"ToolId": TOOL, "SnapshotId": snapshot}
    copy = act(double, "ResumeSessionFromSnapshot", **body, CreateNewInstance=True)["SessionId"]
    act(double, "DeleteSession", SessionId=source)
    again = act(double, "ResumeSessionFromSnapshot", **body)["SessionId"]

    (listed,) = act(double, "ListSessionSnapshots", ToolId=TOOL)["Snapshots"]
    shown = act(double, "GetSessionSnapshot", **body)["Snapshot"]

    assert [ANN, TITLE] == listed["SessionMetadata"] == shown["SessionMetadata"]
    for session_id in (copy, again):
        session = act(double, "GetSession", ToolId=TOOL, SessionId=session_id)
        assert [ANN, TITLE] == session["Metadata"]
