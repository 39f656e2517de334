"""Sessions that expire are asleep, and wake with their SessionId, state and files."""

from __future__ import annotations

import gc
import json
import random
from pathlib import Path
from typing import Any

import psutil
import pytest

from agentdouble import Emulator
from agentdouble.sandbox.session import SandboxSession
from tests.agentdouble.calling import (
    Begun,
    act,
    background,
    body_of,
    call,
    eventually,
    exec_bash,
    http,
    pids_of,
    refusal,
    result,
    run,
    text,
    text_by_id,
)

TOOL = "t-sandbox"
LONG = {"minutes": 31}
COUNT = """
import threading, time
count = 0
def add():
    global count
    while True:
        count += 1
        time.sleep(0.01)
threading.Thread(target=add, daemon=True).start()
"""


def begin(
    double: Emulator, name: str = "u", code: str = "x = [1]; open('f', 'w').write('a')"
) -> str:
    """Run code in a session and return its SessionId."""
    session_id: str = result(double, code, name)["SessionId"]
    return session_id


def asleep(double: Emulator, **query: Any) -> list[dict[str, Any]]:
    """Return the snapshots of sessions that have expired, as a client lists them."""
    query = {"ToolId": TOOL, "SnapshotType": "Automatic", **query}
    snapshots: list[dict[str, Any]] = act(double, "ListSessionSnapshots", **query)["Snapshots"]
    return snapshots


def wake(double: Emulator, **query: Any) -> str:
    """Resume the first listed snapshot, as a client does, and return the SessionId."""
    snapshot = asleep(double, **query)[0]["SnapshotId"]
    fields = {"ToolId": TOOL, "SnapshotId": snapshot, "CreateNewInstance": False}
    session_id: str = act(double, "ResumeSessionFromSnapshot", **fields)["SessionId"]
    return session_id


def test_an_expired_session_wakes_with_its_id_state_and_files(double: Emulator) -> None:
    """Any number of times; a snapshot with the Reason Expired says that it can."""
    session = begin(double)
    for changes in range(3):
        double.clock.advance(**LONG)

        (snapshot,) = asleep(double, UserSessionId="u")
        assert ("Expired", "Ready", session) == (
            snapshot["Reason"],
            snapshot["Status"],
            snapshot["SessionId"],
        )
        assert [] == act(double, "ListSessions", ToolId=TOOL)["SessionInfos"]
        assert session == wake(double)
        assert f"{[1, *range(changes)]} a\n" == text(double, "print(x, open('f').read())", "u")
        text(double, f"x.append({changes})", "u")


def test_a_sleeping_session_uses_no_processor_time(double: Emulator) -> None:
    """Its threads go on when it wakes."""
    begin(double, code=COUNT)
    process = psutil.Process(pids_of(double, "u")[0])
    double.clock.advance(**LONG)

    eventually(process.status, lambda status: status == psutil.STATUS_STOPPED)
    stopped = {thread.user_time for thread in process.threads()}
    exec_bash(double, "sleep 0.1", "other")
    after = {thread.user_time for thread in process.threads()}
    wake(double)

    assert stopped == after
    assert "True\n" == text(double, "n = count\ntime.sleep(0.1)\nprint(count > n)", "u")
    assert process.pid == pids_of(double, "u")[0]


@pytest.mark.needs("files", "pid_namespace")
def test_a_snapshot_of_an_expired_session_is_resumed_more_than_once(double: Emulator) -> None:
    """The second session is a copy; both are found by the name of the user session."""
    session = begin(double)
    double.clock.advance(**LONG)
    snapshot = asleep(double)[0]["SnapshotId"]
    wake(double)
    text(double, "x.append(2)", "u")

    fields = {"ToolId": TOOL, "SnapshotId": snapshot, "CreateNewInstance": True}
    copy = act(double, "ResumeSessionFromSnapshot", **fields)["SessionId"]

    filters = [{"Name": "UserSessionId", "Values": ["u"]}]
    listed = act(double, "ListSessions", ToolId=TOOL, Filters=filters)["SessionInfos"]
    assert [session, copy] == [found["SessionId"] for found in listed]
    assert ("[1]\n", "[1, 2]\n") == tuple(
        text_by_id(double, "print(x)", id_) for id_ in (copy, session)
    )
    assert "[1, 2]\n" == text(double, "print(x)", "u")  # the oldest has the name


def test_a_session_without_a_python_kernel_wakes_with_its_files(double: Emulator) -> None:
    exec_bash(double, "echo 1 > of-bash; sleep 1000 &", "u")
    double.clock.advance(**LONG)

    wake(double)

    assert "1\n" == run(double, "cat of-bash", "u", language="bash")["data"]["stdout"]


def test_a_session_that_ran_nothing_wakes(double: Emulator) -> None:
    session = act(double, "CreateSession", ToolId=TOOL, UserSessionId="u")["SessionId"]
    double.clock.advance(**LONG)

    assert session == wake(double)
    assert "1\n" == text(double, "print(1)", "u")


def test_code_that_runs_at_the_deadline_is_interrupted(double: Emulator) -> None:
    """Its caller gets the end of the session; the state from before is kept."""
    running = Begun(double, "u", "x = 2")
    double.clock.advance(**LONG)
    ended = running.future.result(30)

    wake(double)

    assert "error" == ended["data"]["status"]
    assert "expired at " in ended["message"]
    assert "False\n" == text(double, "print('x' in globals())", "u")


def test_a_call_after_the_deadline_starts_a_new_session(double: Emulator) -> None:
    """SBX-03: only a resume wakes a session, and both live then."""
    session = begin(double)
    double.clock.advance(**LONG)

    fresh = begin(double, code="print('x' in globals())")

    assert session != fresh
    assert session == wake(double)
    assert "[1]\n" == text(double, "print(x)", "u")


@pytest.mark.parametrize(
    "how", [{"max_sleeping_sessions": 0}, {"unknowns": {"U-SNAPSHOT-AUTOMATIC": "never"}}]
)
def test_nothing_is_kept_if_configured(how: dict[str, Any]) -> None:
    with Emulator(**how) as double:
        begin(double)
        process = psutil.Process(pids_of(double, "u")[0])
        double.clock.advance(**LONG)

        assert not process.is_running()
        assert [] == asleep(double)


def test_sessions_of_a_tool_without_enable_snapshot_do_not_sleep(double: Emulator) -> None:
    """Nor can a client take a snapshot of them."""
    tool = act(double, "CreateTool", Name="plain", ToolType="CodeEnv")["ToolId"]
    session = act(double, "CreateSession", ToolId=tool, UserSessionId="u")["SessionId"]
    fields = {"ToolId": tool, "SessionId": session}

    refused = refusal(double, "CreateSessionSnapshot", **fields)
    double.clock.advance(**LONG)

    assert (409, "InvalidSnapshot.NotEnabled") == refused[:2]
    assert [] == asleep(double, ToolId=tool)


def test_a_deleted_session_does_not_sleep(double: Emulator) -> None:
    session = begin(double)
    act(double, "DeleteSession", ToolId=TOOL, SessionId=session)

    assert [] == asleep(double)


def test_the_oldest_sleeping_sessions_are_dropped() -> None:
    """In number by max_sleeping_sessions, in size by sleeping_sessions_limit."""
    with Emulator(max_sleeping_sessions=2) as double:
        for name in ("a", "b", "c"):
            begin(double, name)
            double.clock.advance(**LONG)
        assert ["c", "b"] == [snapshot["UserSessionId"] for snapshot in asleep(double)]
    with Emulator(sleeping_sessions_limit=100 << 20) as double:
        begin(double, "big", "x = bytearray(150 << 20)")
        begin(double, "small")
        double.clock.advance(**LONG)
        assert ["small"] == [snapshot["UserSessionId"] for snapshot in asleep(double)]


def test_a_reset_ends_sleeping_sessions(double: Emulator) -> None:
    begin(double)
    process = psutil.Process(pids_of(double, "u")[0])
    double.clock.advance(**LONG)

    double.reset()

    assert not process.is_running()
    assert [] == asleep(double)


def test_the_files_of_a_sleeping_session_survive_a_restart(tmp_path: Path) -> None:
    """Its id, its links and the modes of its files, too; the Python kernel is gone."""
    code = (
        "import os; x = 1; os.mkdir('d'); open('d/f', 'w').write('kept'); os.symlink('d/f', 'l');"
        "os.chmod('d/f', 0o700); open('/tmp/t', 'w').write('too')"
    )
    look = (
        "import os; print('x' in globals(), open('l').read(), os.access('d/f', os.X_OK), "
        "open('/tmp/t').read()); open('d/f', 'a').write('!')"
    )
    state = f"sqlite:///{tmp_path}/state.db"
    with Emulator(state=state) as double:
        session = begin(double, code=code)
        double.clock.advance(**LONG)
    with Emulator(state=state) as double:
        (snapshot,) = asleep(double)
        assert session == wake(double)
        assert "False kept True too\n" == text(double, look, "u")
        act(double, "DeleteSessionSnapshot", ToolId=TOOL, SnapshotId=snapshot["SnapshotId"])
    with Emulator(state=state) as double:
        assert [] == asleep(double)


def test_a_manual_snapshot_survives_a_restart(tmp_path: Path) -> None:
    """With its files; a newer snapshot has another id."""
    state = f"sqlite:///{tmp_path}/state.db"
    with Emulator(state=state) as double:
        session = begin(double)
        snapshot = act(double, "CreateSessionSnapshot", ToolId=TOOL, SessionId=session)[
            "SnapshotId"
        ]
    with Emulator(state=state) as double:
        fields = {"ToolId": TOOL, "SnapshotId": snapshot, "CreateNewInstance": True}
        act(double, "ResumeSessionFromSnapshot", **fields)
        assert "a\n" == text(double, "print(open('f').read())", "u")


@pytest.mark.slow
def test_sessions_wake_in_any_order(double: Emulator) -> None:
    names = [f"u{number}" for number in range(20)]
    ids = {name: begin(double, name, f"x = {name!r}") for name in names}
    double.clock.advance(**LONG)

    random.Random(7).shuffle(names)
    for name in names:
        assert ids[name] == wake(double, UserSessionId=name)
        assert f"{name}\n" == text(double, "print(x)", name)


def test_all_who_wake_a_session_at_once_get_it(double: Emulator) -> None:
    """It wakes once, with its own process."""
    session = begin(double)
    process = pids_of(double, "u")
    double.clock.advance(**LONG)
    fields = {"ToolId": TOOL, "SnapshotId": asleep(double)[0]["SnapshotId"]}

    woken = [
        background(lambda: act(double, "ResumeSessionFromSnapshot", **fields)) for _ in range(4)
    ]

    assert [session] * 4 == [answer.result(30)["SessionId"] for answer in woken]
    assert process == pids_of(double, "u")
    assert "[1]\n" == text(double, "print(x)", "u")


def test_code_that_comes_while_a_session_wakes_sees_its_state(tmp_path: Path) -> None:
    with Emulator(state=f"sqlite:///{tmp_path}/state.db") as double:
        session = begin(double)
        body = {**body_of(double, "print(x)"), "UserSessionId": None, "SessionId": session}
        for _ in range(5):
            double.clock.advance(**LONG)
            asking = background(
                lambda: eventually(lambda: call(double, body), lambda it: it.status_code == 200)
            )
            wake(double)

            inner = json.loads(asking.result(60).json()["Result"]["Result"])
            assert "[1]\n" == inner["data"]["outputs"][0]["text"]


def test_what_has_been_awake_is_released(double: Emulator) -> None:
    """Neither memory nor descriptors nor processes grow while one session sleeps and wakes."""
    begin(double)
    sizes = []
    for _ in range(3):
        for _ in range(5):
            double.clock.advance(**LONG)
            wake(double)
            text(double, "x", "u")
        gc.collect()
        kept = sum(isinstance(it, SandboxSession) and it.id != "" for it in gc.get_objects())
        # The process of the snapshot before may still be ending. Its kernel reaps it when it makes
        # the next one, so there is at most one more that has ended.
        children = psutil.Process(pids_of(double, "u")[0]).children
        found = eventually(children, lambda it: len(alive(it)) <= 1)
        assert len(found) <= 2
        sizes.append((kept, len(alive(found))))

    assert sizes[0] == sizes[1] == sizes[2]


def alive(children: list[psutil.Process]) -> list[psutil.Process]:
    """Return the processes that have not ended."""
    return [child for child in children if child.status() != psutil.STATUS_ZOMBIE]


def test_a_sleeping_kernel_that_is_killed_cannot_wake(double: Emulator) -> None:
    """Its snapshot says why; the session is no longer shown as asleep."""
    begin(double)
    (pid,) = pids_of(double, "u")
    double.clock.advance(**LONG)
    assert "asleep" == shown(double)["state"]

    psutil.Process(pid).kill()

    snapshot = eventually(lambda: asleep(double)[0], lambda it: it["Status"] == "Failed")
    assert "SIGKILL" in snapshot["Reason"]
    assert "destroyed" == shown(double)["state"]


def test_a_session_is_shown_as_asleep_until_it_wakes(double: Emulator) -> None:
    """The journal's entry of the call that wakes it names it."""
    session = begin(double)
    double.clock.advance(**LONG)

    sleeping = shown(double)
    act(double, "ResumeSessionFromSnapshot", ToolId=TOOL, SnapshotId=sleeping["SnapshotId"])

    assert "asleep" == sleeping["state"]
    listed = http.get(f"{double.url}/_emulator/sessions").json()
    assert [] == listed["ended"]
    entries = http.get(f"{double.url}/_emulator/journal").json()["entries"]
    assert session == entries[-1]["session"]


def test_a_session_with_files_that_cannot_be_counted_still_ends(double: Emulator) -> None:
    """Its snapshot has failed, and nothing of it is left."""
    begin(double, code="import os\nfor _ in range(2500): os.mkdir('d'); os.chdir('d')")
    process = psutil.Process(pids_of(double, "u")[0])
    double.clock.advance(**LONG)

    (snapshot,) = asleep(double)
    assert ("Failed", "Create failed") == (snapshot["Status"], snapshot["Reason"])
    assert not process.is_running()


def test_only_files_are_kept_if_the_ledger_says_so() -> None:
    """No process sleeps, and the session wakes with its files any number of times."""
    with Emulator(unknowns={"U-SNAPSHOT-CARRIES": "files"}) as double:
        begin(double)
        for _ in range(2):
            process = psutil.Process(pids_of(double, "u")[0])
            double.clock.advance(**LONG)
            assert not process.is_running()
            wake(double)
            assert "False a\n" == text(double, "print('x' in globals(), open('f').read())", "u")


def test_a_session_with_child_processes_sleeps_with_them(double: Emulator) -> None:
    begin(double, code="import subprocess; p = subprocess.Popen(['sleep', '1000'])")
    (child,) = psutil.Process(pids_of(double, "u")[0]).children()
    double.clock.advance(**LONG)
    stopped = child.status()

    wake(double)

    assert psutil.STATUS_STOPPED == stopped
    assert "None\n" == text(double, "print(p.poll())", "u")


@pytest.mark.parametrize("provisioner", ["auto", "local-provisioner"])
def test_nothing_is_left_of_sessions_that_fall_asleep_at_the_end(provisioner: str) -> None:
    with Emulator(provisioner=provisioner) as double:
        for name in ("u", "v", "w"):
            begin(double, name)
        processes = [psutil.Process(pid) for name in "uvw" for pid in pids_of(double, name)]
        background(lambda: double.clock.advance(**LONG))
        eventually(lambda: asleep(double), bool)

    assert [] == [process for process in processes if process.is_running()]


def shown(double: Emulator) -> dict[str, Any]:
    """Return the only session that has ended, as it is shown."""
    (ended,) = http.get(f"{double.url}/_emulator/sessions").json()["ended"]
    found: dict[str, Any] = ended
    return found
