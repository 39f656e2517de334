"""Session snapshots: the five actions, over the wire and with real kernels."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.control_plane.wire import stamp
from tests.agentdouble.calling import (
    Begun,
    act,
    refusal,
    result,
    run,
    sessions_of,
    text,
    text_by_id,
)

TOOL = "t-sandbox"
SET_UP = "import os\nx = [1]\nopen('f', 'w').write('first')\nos.environ['MARK'] = 'kept'"
LOOK = "import os\nprint(x, open('f').read(), os.environ.get('MARK'), os.environ.get('GIVEN'))"
CHANGE = "x.append(2)\nopen('f', 'w').write('second')\nos.environ['MARK'] = 'changed'"

pytestmark = pytest.mark.needs("files", "pid_namespace")


def begin(double: Emulator, name: str = "u", code: str = SET_UP) -> str:
    """Run code in a session and return its SessionId."""
    session_id: str = result(double, code, name)["SessionId"]
    return session_id


def take(double: Emulator, session_id: str, **fields: Any) -> str:
    snapshot = act(double, "CreateSessionSnapshot", ToolId=TOOL, SessionId=session_id, **fields)
    snapshot_id: str = snapshot["SnapshotId"]
    return snapshot_id


def resume(double: Emulator, snapshot_id: str, **fields: Any) -> str:
    """Resume a snapshot and return the SessionId."""
    body = {"ToolId": TOOL, "SnapshotId": snapshot_id, **fields}
    session_id: str = act(double, "ResumeSessionFromSnapshot", **body)["SessionId"]
    return session_id


def fetch(double: Emulator, session_id: str) -> dict[str, Any]:
    return act(double, "GetSession", ToolId=TOOL, SessionId=session_id)


def get(double: Emulator, snapshot_id: str) -> dict[str, Any]:
    snapshot = act(double, "GetSessionSnapshot", ToolId=TOOL, SnapshotId=snapshot_id)["Snapshot"]
    assert isinstance(snapshot, dict)
    return snapshot


def ids(double: Emulator, **query: Any) -> list[str]:
    listed = act(double, "ListSessionSnapshots", ToolId=TOOL, **query)
    return [snapshot["SnapshotId"] for snapshot in listed["Snapshots"]]


def refused(double: Emulator, action: str, snapshot_id: str) -> tuple[int, str]:
    return refusal(double, action, ToolId=TOOL, SnapshotId=snapshot_id)[:2]


def listed_sessions(double: Emulator) -> list[str]:
    sessions = act(double, "ListSessions", ToolId=TOOL)["SessionInfos"]
    return [session["UserSessionId"] for session in sessions]


def in_bash(double: Emulator, command: str) -> str:
    stdout: str = run(double, command, "u", language="bash")["data"]["stdout"]
    return stdout


def name_of(double: Emulator, session_id: str) -> str:
    name: str = fetch(double, session_id)["UserSessionId"]
    return name


def test_new_instance_restores_state_files_and_environment(double: Emulator) -> None:
    """Neither the source nor another copy affects it; they share the name of the user session."""
    act(
        double,
        "CreateSession",
        ToolId=TOOL,
        UserSessionId="u",
        Envs=[{"Key": "GIVEN", "Value": "g"}],
    )
    source = begin(double)
    snapshot = take(double, source)
    text(double, CHANGE, "u")

    new, two = (resume(double, snapshot, CreateNewInstance=True, Ttl=600) for _ in range(2))
    text_by_id(double, CHANGE, new)

    assert "[1] first kept g\n" == text_by_id(double, LOOK, two)
    assert "[1, 2] second changed g\n" == text_by_id(double, LOOK, source)
    assert "[1, 2] second changed g\n" == text(double, LOOK, "u")  # the source has the name
    assert 4 == len({source, new, two, snapshot})
    assert ["u", "u", "u"] == listed_sessions(double)
    times = (
        dt.datetime.fromisoformat(fetch(double, new)[key][:-1]) for key in ("CreatedAt", "ExpireAt")
    )
    assert dt.timedelta(minutes=10) == -(next(times) - next(times))


def test_living_session_is_restored_in_place(double: Emulator) -> None:
    """It keeps its SessionId; processes other than its Python kernel end and can restart."""
    source = begin(double)
    in_bash(double, "echo 1 > of-bash; sleep 1000 &")
    snapshot = take(double, source)
    text(double, CHANGE, "u")
    before = set(sessions_of(double).living()[0].processes.pids)

    assert source == resume(double, snapshot)

    assert "[1] first kept None\n" == text(double, LOOK, "u")
    assert "1\n" == in_bash(double, "cat of-bash")
    assert "2\n" == text(double, "console.log(2)", "u", language="javascript")
    assert not before & set(sessions_of(double).living()[0].processes.pids)
    assert source == result(double, "1", "u")["SessionId"]
    assert get(double, snapshot)["Reason"] == ""
    logs = act(double, "GetSessionLogs", ToolId=TOOL, SessionId=source)["Logs"]
    assert f"snapshot {snapshot} taken. Not in it: terminals and commands in bash" in logs


def test_ended_session_lives_again_with_its_id(double: Emulator) -> None:
    """Beside a later session of the user, whose state stays."""
    source = begin(double)
    snapshot = take(double, source)
    act(double, "DeleteSession", ToolId=TOOL, SessionId=source)
    later = begin(double, code="x = 'later'")

    resumed = resume(double, snapshot)

    assert source == resumed
    assert "[1] first kept None\n" == text(double, LOOK, "u")
    assert "later\n" == text_by_id(double, "print(x)", later)
    assert [snapshot] == ids(double)
    logs = act(double, "GetSessionLogs", ToolId=TOOL, SessionId=resumed)["Logs"]
    assert f"has the state of snapshot {snapshot}" in logs
    assert [source] == [fetch(double, source)["SessionId"]]
    act(double, "DeleteSession", ToolId=TOOL, SessionId=source)
    assert "later\n" == text(double, "print(x)", "u")
    assert source == resume(double, snapshot)


def test_ended_session_gets_another_id_if_configured() -> None:
    """U-SNAPSHOT-ENDED new-session-id, U-SNAPSHOT-NEW-INSTANCE new."""
    unknowns = {"U-SNAPSHOT-ENDED": "new-session-id", "U-SNAPSHOT-NEW-INSTANCE": "new"}
    with Emulator(unknowns=unknowns) as double:
        source = begin(double)
        snapshot = take(double, source)
        act(double, "DeleteSession", ToolId=TOOL, SessionId=source)

        resumed = resume(double, snapshot)
        copy = resume(double, snapshot, CreateNewInstance=True)

        assert source != resumed
        assert "[1] first kept None\n" == text(double, LOOK, "u")
        assert name_of(double, copy).startswith("u-")
        ended = act(double, "GetSessionLogs", ToolId=TOOL, SessionId=source)["Logs"]
        assert f"snapshot {snapshot} taken" in ended


def test_a_deleted_session_is_ending_for_a_while_if_configured() -> None:
    """U-SNAPSHOT-TERMINATING refused: a client that asks again every 5 s succeeds."""
    with Emulator(unknowns={"U-SNAPSHOT-TERMINATING": "refused"}) as double, double.clock.freeze():
        source = begin(double)
        snapshot = take(double, source)
        act(double, "DeleteSession", ToolId=TOOL, SessionId=source)

        answers = []
        for _ in range(2):
            answers.append(refused(double, "ResumeSessionFromSnapshot", snapshot))
            double.clock.advance(seconds=5)

        assert [(409, "InvalidSnapshot.InstanceTerminating")] * 2 == answers
        assert source == resume(double, snapshot)


def test_snapshot_fields(double: Emulator) -> None:
    """GetSessionSnapshot and ListSessionSnapshots return the same fields."""
    with double.clock.freeze():
        now = stamp(double.clock.now())
        source = begin(double)
        snapshot = take(double, source)

    listed = act(double, "ListSessionSnapshots", ToolId=TOOL)

    assert {
        "SnapshotId": snapshot,
        "SnapshotType": "Manual",
        "Status": "Ready",
        "Reason": "",
        "ToolId": TOOL,
        "SessionId": source,
        "SandboxId": source,
        "UserSessionId": "u",
        "SessionMetadata": [],
        "CreatedAt": now,
    } == get(double, snapshot)
    assert {
        "Snapshots": [get(double, snapshot)],
        "NextToken": "",
        "PageNumber": 1,
        "PageSize": 100,
        "TotalCount": 1,
    } == listed


def test_lists_are_filtered_and_newest_first(double: Emulator) -> None:
    """A real client lists one snapshot and resumes it."""
    session, two = begin(double, "one"), begin(double, "two")
    with double.clock.freeze():  # the order does not depend on the time
        first, second, third = take(double, session), take(double, two), take(double, session)
        now = stamp(double.clock.now())
        double.clock.advance(minutes=1)
        fourth = take(double, session)

    page = act(double, "ListSessionSnapshots", ToolId=TOOL, MaxResults=3)
    rest = ids(double, MaxResults=3, NextToken=page["NextToken"])

    assert [fourth, third, second] == [snapshot["SnapshotId"] for snapshot in page["Snapshots"]]
    assert (4, [first]) == (page["TotalCount"], rest)
    assert [second, first] == ids(double, PageNumber=2, PageSize=2)
    assert [fourth, third, first] == ids(double, SessionId=session)
    assert [second] == ids(double, UserSessionId="two")
    assert "" == get(double, fourth)["Reason"]  # the snapshots before are no child processes
    assert [third, second, first] == ids(double, CreateTimeBefore=now)
    assert [] == ids(double, SnapshotType="Automatic")  # none has expired
    assert [fourth] == ids(double, UserSessionId="one", MaxResults=1)


def test_retention_count_keeps_the_newest_of_a_session(double: Emulator) -> None:
    """Other sessions' snapshots stay; the log lists the dropped ones."""
    session, other = begin(double, "one"), begin(double, "other")
    first, retained, second = take(double, session), take(double, other), take(double, session)

    third = take(double, session, RetentionCount=2)

    assert [third, second, retained] == ids(double)
    logs = act(double, "GetSessionLogs", ToolId=TOOL, SessionId=session)["Logs"]
    assert f"snapshot {first} dropped for newer ones" in logs
    assert (404, "InvalidSnapshot.NotFound") == refused(double, "GetSessionSnapshot", first)


def test_invalid_requests_are_refused_by_name(double: Emulator) -> None:
    """Each reason has a code, and nothing is kept."""
    source = begin(double)
    snapshot = take(double, source)
    running = Begun(double, "u", "pass")
    create = {"ToolId": TOOL, "SessionId": source}

    busy = refusal(double, "CreateSessionSnapshot", **create)
    busy_too = refused(double, "ResumeSessionFromSnapshot", snapshot)
    running.go()
    running.future.result()
    act(double, "PauseSession", **create)
    paused = refusal(double, "CreateSessionSnapshot", **create)
    act(double, "DeleteSession", **create)
    ended = refusal(double, "CreateSessionSnapshot", **create)

    assert (409, "InvalidSnapshot.InstanceBusy") == busy[:2] == busy_too
    assert "runs or waits for its turn" in busy[2]
    assert (409, "InvalidSnapshot.InstancePaused") == paused[:2]
    assert (404, "InvalidResource.NotFound") == ended[:2]
    assert [snapshot] == ids(double)
    act(double, "DeleteSessionSnapshot", ToolId=TOOL, SnapshotId=snapshot)
    assert [] == ids(double)
    for action in ("GetSessionSnapshot", "DeleteSessionSnapshot", "ResumeSessionFromSnapshot"):
        assert (404, "InvalidSnapshot.NotFound") == refused(double, action, snapshot)


@pytest.mark.slow
def test_snapshots_of_a_session_share_a_file_limit() -> None:
    """Other sessions' files and those of deleted or dropped snapshots do not count."""
    fill = "open('f', 'wb').write(bytes(200 << 10) * 2)"
    with Emulator(workspace_limit=1 << 20) as double:
        source = begin(double, code=fill)
        first, second = take(double, source), take(double, source)
        refused = refusal(double, "CreateSessionSnapshot", ToolId=TOOL, SessionId=source)
        assert "QuotaExceeded" == refused[1]
        assert "workspace_limit = 1048576" in refused[2]
        assert [second, first] == ids(double)
        take(double, begin(double, "v", fill))
        act(double, "DeleteSessionSnapshot", ToolId=TOOL, SnapshotId=first)
        take(double, source)
        take(double, source, RetentionCount=2)


def test_snapshots_end_with_their_tool_and_on_reset(double: Emulator) -> None:
    """Resumed sessions survive unless their tool is deleted."""
    tool = act(double, "CreateTool", Name="made", ToolType="CodeEnv", EnableSnapshot=True)["ToolId"]
    assert act(double, "GetTool", ToolId=tool)["EnableSnapshot"] is True
    session_id = act(double, "CreateSession", ToolId=tool)["SessionId"]
    act(double, "CreateSessionSnapshot", ToolId=tool, SessionId=session_id)
    id_ = take(double, begin(double))

    act(double, "DeleteTool", ToolId=tool)

    assert [id_] == ids(double)
    double.reset(keep=["session_snapshots"])
    assert [id_] == ids(double)
    assert "[1] first kept None\n" == text_by_id(double, LOOK, resume(double, id_))
    double.reset()
    assert [] == ids(double)
