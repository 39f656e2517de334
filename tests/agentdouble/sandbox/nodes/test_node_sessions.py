from __future__ import annotations

import asyncio
import datetime as dt
import filecmp
import hashlib
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import time_machine

from agentdouble import Emulator
from agentdouble.sandbox.nodes.node import Node
from tests.agentdouble.calling import (
    Begun,
    act,
    act_on_session,
    background,
    data_plane,
    error_of,
    eventually,
    http,
    refusal,
    result,
    run,
    send,
    signed,
    text,
    text_by_id,
)
from tests.agentdouble.control_plane.test_session_snapshots import get, resume, take
from tests.agentdouble.sandbox.hearing import listening, to_the_end
from tests.agentdouble.sandbox.nodes.fronts import (
    drain,
    front,
    have_joined,
    journal,
    living,
    nodes,
    on_both,
    process_of,
)

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def _front() -> Iterator[Emulator]:
    with front() as double:
        yield double


@pytest.fixture
def double(_front: Emulator) -> Emulator:
    _front.reset()
    return _front


def test_a_session_keeps_its_context_on_its_node(double: Emulator) -> None:
    """Sessions of both nodes do so, in either language."""
    for session in on_both(double).values():
        assert "42\n" == text(double, "print(x + 1)", session)
        run(double, "let y = 1", session, language="javascript")
        assert "2\n" == text(double, "console.log(y + 1)", session, language="javascript")
        assert {"name 'z' is not defined"} == {
            output["evalue"] for output in run(double, "z", session)["data"]["outputs"]
        }


def test_the_journal_and_the_list_of_sessions_name_the_node(double: Emulator) -> None:
    result(double, "1")

    (session,) = living(double).values()
    assert session["node"] in nodes(double)
    assert [session["node"]] == [e["node"] for e in journal(double) if "InvokeTool" in e["url"]]
    assert (1, 1, True) == (
        session["executions"],
        len(session["pids"]),
        Path(session["home"]).is_absolute(),
    )


def test_a_command_runs_on_the_node_of_the_session(double: Emulator) -> None:
    """Code sees the file that it writes."""
    result(double, "open('from_code', 'w').write('a').__class__")
    payload = '{"command": "cat from_code; echo b > from_bash"}'
    body = {"ToolId": double.tool_id, "UserSessionId": "s1", "OperationType": "ExecBash"}
    act(double, "InvokeTool", **body, OperationPayload=payload)

    assert "b\n" == text(double, "print(open('from_bash').read(), end='')")


@pytest.mark.needs("files")
def test_files_of_some_size_pass_through_the_front(double: Emulator) -> None:
    """The content comes back unchanged, in pieces."""
    plane, content = data_plane(double), bytes(range(256)) * 4096 * 64
    sent = http.post(
        f"{plane.url}/v1/file/upload", params=plane.query, files={"file": ("f.bin", content)}
    ).json()["data"]
    received = plane.get("/v1/file/download", path=sent["file_path"]).content

    assert hashlib.sha256(content).digest() == hashlib.sha256(received).digest()
    size = text(double, f"import os; print(os.path.getsize({sent['file_path']!r}))")
    assert f"{64 * MIB}\n" == size


@pytest.mark.needs("files")
def test_a_long_command_is_waited_for_on_the_node(double: Emulator) -> None:
    """Its whole output comes from there, and the terminal's address is that of the front."""
    plane = data_plane(double)
    running = plane.data("/v1/shell/exec", command="sleep 0.3; seq 20000", timeout=0)
    done = plane.data("/v1/shell/wait", id=running["session_id"], seconds=60)
    output = plane.get("/v1/file/download", path=done["full_output_file_path"]).text
    terminal = plane.get("/v1/shell/terminal-url").json()["data"]

    assert ("running", "completed") == (running["status"], done["status"])
    assert "".join(f"{n}\n" for n in range(1, 20_001)) == output
    assert terminal.startswith(f"{plane.url}/v1/shell/terminal?")


def test_outputs_are_heard_while_code_runs(double: Emulator) -> None:
    """The first one arrives before the code may continue."""
    with listening(double, "heard") as events:
        code = Begun(double, "heard", "print('after')")
        code.go()
        assert "ok" == code.future.result()["data"]["status"]
        kinds = [kind for kind, _ in [*to_the_end(events), *to_the_end(events)]]

    assert ["started", "finished", "started", "output", "finished"] == kinds


@pytest.mark.parametrize("kind", ["kill_kernel", "expire_instance"])
def test_faults_of_the_front_happen_on_the_node(double: Emulator, kind: str) -> None:
    double.faults.arm(kind, "InvokeTool", after=1)
    lost = run(double, "print(1, flush=True)\nimport time\ntime.sleep(60)")

    assert ("error", "KernelDied") == (lost["data"]["status"], lost["data"]["outputs"][-1]["ename"])
    assert [1] == [state.fired for state in double.faults.states()]
    assert {} == eventually(lambda: living(double), lambda sessions: not sessions)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fault", '{"kind": "expire_instance", "after": 0}'),
        ("fault", '{"kind": "kill_kernel", "after": 0}'),
        ("fault", "no JSON"),
        ("fault", '{"kind": "nothing", "more": 1}'),
        ("scheme", "gopher"),
        ("node", "not the key"),
        ("session", '{"ended": "so says the client"}'),
        ("anything", "x"),
    ],
)
def test_clients_cannot_send_the_headers_of_a_front(
    double: Emulator, name: str, value: str
) -> None:
    """They end no session, and the session hears nothing of them."""
    assert "41\n" == text(double, "x = 41; print(x)")
    plane = data_plane(double)

    answer = http.post(
        f"{plane.url}/v1/jupyter/execute",
        params=plane.query,
        json={"code": "print(x + 1)"},
        headers={f"X-AgentDouble-{name}": value},
    )

    assert (200, "ok") == (answer.status_code, answer.json()["data"]["status"]), answer.text
    assert "42\n" == answer.json()["data"]["outputs"][0]["text"]
    assert "x-agentdouble-session" not in answer.headers
    assert "41\n" == text(double, "print(x)")


def test_sessions_end_on_the_clock_of_the_front() -> None:
    """They are gone, and their processes with them, when the move returns."""
    with front(max_sleeping_sessions=0) as double:
        for number in range(4):
            result(double, "1", f"s{number}")
        pids = [pid for session in living(double).values() for pid in session["pids"]]
        double.clock.advance(minutes=30)

        assert {} == living(double)
        assert 4 == len(pids)
        assert [] == [pid for pid in pids if _is_alive(pid)]


def _is_alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_paused_session_runs_nothing(double: Emulator) -> None:
    session = result(double, "x = 1")["SessionId"]
    act_on_session(double, "PauseSession", session)
    plane = http.get(f"{double.url}/v1/sandbox", params={"faasInstanceName": session})
    refused = error_of(send(signed(double, _code(double, "x"))))
    act_on_session(double, "ResumeSession", session)

    assert ("InvalidResource.Paused", 409) == (refused["Code"], refused["status"])
    assert 401 == plane.status_code
    assert "1\n" == text(double, "print(x)")


def _code(double: Emulator, code: str) -> dict[str, object]:
    payload = f'{{"code": "{code}"}}'
    fields = {"OperationType": "RunCode", "OperationPayload": payload}
    return {"ToolId": double.tool_id, "UserSessionId": "s1", **fields}


def test_running_code_is_interrupted_on_its_node(double: Emulator) -> None:
    code = Begun(double, "s1", "import time; time.sleep(300)", timeout_s=300)
    code.go()
    session = living(double)["s1"]["SessionId"]
    answer = http.post(f"{double.url}/_emulator/sessions/{session}/interrupt").json()

    assert ["python3"] == answer["interrupted"]
    assert "KeyboardInterrupt" == code.future.result()["data"]["outputs"][-1]["ename"]


def test_the_first_call_of_a_session_is_interrupted(double: Emulator) -> None:
    """The node says that the session is open while the call still runs."""
    endless = "import time; print(1, flush=True); time.sleep(300)"
    with listening(double, "first") as events:
        call = background(lambda: run(double, endless, "first", timeout_s=300))
        while next(events)[0] != "output":
            pass
        session = living(double)["first"]["SessionId"]
        answer = http.post(f"{double.url}/_emulator/sessions/{session}/interrupt").json()

    assert ["python3"] == answer["interrupted"]
    assert "KeyboardInterrupt" == call.result(60)["data"]["outputs"][-1]["ename"]


def test_variables_and_completions_come_from_the_node(double: Emulator) -> None:
    session = result(double, "printable = 1")["SessionId"]
    listed = http.get(f"{double.url}/_emulator/sessions/{session}/variables").json()
    question = {"user_session_id": "s1", "code": "printab"}
    completed = http.post(f"{double.url}/_emulator/complete", json=question).json()

    assert ["printable"] == [variable["name"] for variable in listed["variables"]]
    assert ["printable"] == completed["matches"]


def test_a_changed_choice_holds_on_the_nodes_at_once(double: Emulator) -> None:
    """Code that runs too long loses its session only if the ledger says so."""
    timed_out = run(double, "while True: pass", "kept", timeout_s=1)
    assert ("timeout", True) == (timed_out["data"]["status"], "kept" in living(double))

    with_choice = {"U-EXEC-TIMEOUT": "instance-lost"}
    double._platform.context.ledger.change(with_choice)
    try:
        run(double, "while True: pass", "lost", timeout_s=1)
        assert "lost" not in living(double)
    finally:
        double._platform.context.ledger.change({})


def test_variables_of_the_tool_and_the_session_reach_the_node(double: Emulator) -> None:
    envs = [{"Key": "COLOUR", "Value": "green"}]
    tool = act(double, "CreateTool", Name="t", ToolType="CodeEnv", Envs=envs)["ToolId"]
    act(double, "CreateSession", ToolId=tool, UserSessionId="s", Envs=[{"Key": "N", "Value": "7"}])
    body = _code(double, "import os; print(os.environ['COLOUR'], os.environ['N'])")
    answer = send(signed(double, {**body, "ToolId": tool, "UserSessionId": "s"}))

    assert "green 7" in answer.json()["Result"]["Result"]


@pytest.mark.needs("files", "pid_namespace")
def test_a_snapshot_is_resumed_on_its_node(double: Emulator) -> None:
    """In place or as a new session; its state and files are those of that time."""
    for node, session in on_both(double).items():
        source = result(double, "open('f', 'w').write('first')", session)["SessionId"]
        snapshot = take(double, source)
        text(double, "x = 0; open('f', 'w').close()", session)
        copied = resume(double, snapshot, CreateNewInstance=True)
        (copy,) = (s for s in living(double).values() if s["SessionId"] == copied)
        look = "print(x, open('f').read())"

        assert node == copy["node"]
        assert "41 first\n" == text_by_id(double, look, copied)
        assert "0 \n" == text_by_id(double, look, source)
        act(double, "DeleteSession", ToolId=double.tool_id, SessionId=copied)
        assert source == resume(double, snapshot)
        assert "41 first\n" == text(double, look, session)
        act(double, "DeleteSessionSnapshot", ToolId=double.tool_id, SnapshotId=snapshot)


@pytest.mark.needs("files", "pid_namespace")
def test_a_snapshot_is_not_copied_to_another_node() -> None:
    with front() as double:
        (node, session), _ = on_both(double).items()
        snapshot = take(double, living(double)[session]["SessionId"])
        drain(double, node, 600)
        fields = {"ToolId": double.tool_id, "SnapshotId": snapshot, "CreateNewInstance": True}
        message = refusal(double, "ResumeSessionFromSnapshot", **fields)[2]

        assert f"it is on the node {node}, and that has no place now" in message
        assert "41\n" == text(double, "print(x)", session)


@pytest.mark.needs("files", "pid_namespace")
def test_a_snapshot_is_lost_with_its_node() -> None:
    with front(1) as double:
        snapshot = take(double, result(double, "1")["SessionId"])
        process_of(double, "node-1").kill()
        fields = {"ToolId": double.tool_id, "SnapshotId": snapshot}
        eventually(lambda: get(double, snapshot), lambda shown: "node-1" in shown["Reason"])
        have_joined(double, 1)
        status, code, message = refusal(double, "ResumeSessionFromSnapshot", **fields)

    assert (409, "InvalidSnapshot.NotReady") == (status, code)
    assert "is gone (its node node-1 has ended" in message


def test_a_notebook_of_a_session_on_a_node_is_refused_by_name(double: Emulator) -> None:
    """No kernel starts at the front instead."""
    result(double, "1")
    headers = {"Authorization": f"Bearer {double.token}"}
    question = {"name": "python3", "path": "s1"}
    answer = http.post(f"{double.url}/jupyter/api/kernels", json=question, headers=headers)

    assert (501, True) == (answer.status_code, "A notebook of a session on a node" in answer.text)


def test_a_session_that_grows_too_large_ends_on_its_node() -> None:
    """The front learns why, although nothing asks for the session."""
    grow = "import os\nfor i in range(16): open(f'f{i}', 'wb').write(bytes(2**20))"
    with front(1, workspace_limit=8 * MIB) as double:
        result(double, f"import threading\nthreading.Timer(0.1, lambda: exec({grow!r})).start()")
        eventually(lambda: living(double), lambda sessions: not sessions)
        (ended,) = http.get(f"{double.url}/_emulator/sessions").json()["ended"]

    assert "killed: its files grew over 8 MiB" == ended["reason"]


def test_time_of_the_front_that_is_frozen_does_not_matter_to_nodes(double: Emulator) -> None:
    with double.clock.freeze():
        double.clock.advance(dt.timedelta(days=365))
        assert "2\n" == text(double, "print(1 + 1)")


@pytest.mark.parametrize("skew_s", [-60, 60])
def test_clocks_of_front_and_node_need_not_agree(skew_s: int) -> None:
    """Calls, files and deadlines follow the front's."""
    there = dt.datetime.now(dt.timezone.utc)
    with front(1) as double, time_machine.travel(there + dt.timedelta(seconds=skew_s)):
        session = result(double, "import time; open('t', 'w').write(str(time.time()))", "s1")
        plane = data_plane(double)
        apart_s = time.time() - float(plane.get("/v1/file/download", path="t").text)
        double.clock.advance(minutes=29)
        assert "2\n" == text(double, "print(2)")
        assert session["SessionId"] == living(double)["s1"]["SessionId"]
        double.clock.advance(minutes=1)

        assert abs(apart_s - skew_s) < 30
        assert {} == living(double)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_file_of_a_gibibyte_passes_through_little_memory(tmp_path: Path) -> None:
    """The front holds no more than a few pieces of it, in either direction."""
    source, back = tmp_path / "source", tmp_path / "back"
    with source.open("wb") as file:
        for number in range(1024):
            file.write(number.to_bytes(4, "big") * (MIB // 4))
    with front(1, workspace_limit=4096 * MIB) as double, source.open("rb") as file:
        plane = data_plane(double)
        _forget_peak()
        before = _peak()
        form = {"file": ("big.bin", file)}
        sent = http.post(f"{plane.url}/v1/file/upload", params=plane.query, files=form).json()
        params = {**plane.query, "path": sent["data"]["file_path"]}
        with (
            http.stream("GET", f"{plane.url}/v1/file/download", params=params) as answer,
            back.open("wb") as copy,
        ):
            for piece in answer.iter_bytes(MIB):
                copy.write(piece)
        grown = _peak() - before

    assert filecmp.cmp(source, back, shallow=False)
    assert grown < 64 * MIB


def _forget_peak() -> None:
    """Let the largest amount of memory that this process had be what it has now."""
    Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    """Return the largest amount of memory that this process, the front, has had, in bytes."""
    (line,) = (x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x)
    return int(line.split()[1]) * 1024


def test_expired_sessions_on_nodes_wake_with_their_state() -> None:
    """On their nodes, any number of times."""
    with front() as double:
        session = result(double, "x = 41", "u")["SessionId"]
        for _ in range(2):
            double.clock.advance(minutes=31)
            fields = {"ToolId": double.tool_id, "SnapshotType": "Automatic"}
            (snapshot,) = act(double, "ListSessionSnapshots", **fields)["Snapshots"]
            ids = {"ToolId": double.tool_id, "SnapshotId": snapshot["SnapshotId"]}

            assert session == act(double, "ResumeSessionFromSnapshot", **ids)["SessionId"]
            assert "42\n" == text(double, "print(x + 1)", "u")


def test_late_news_of_an_end_leave_the_session_that_lives_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The news of its first end arrive after it was resumed with the same id."""
    held, arrive, handled = threading.Event(), threading.Event(), threading.Event()
    ask = Node.ask

    async def ask_late(node: Node, path: str, *rest: Any) -> dict[str, Any]:
        if path == "/watch" and arrive.is_set():
            handled.set()  # the news that came before are handled
        answer = await ask(node, path, *rest)
        if path == "/watch" and answer["ended"]:
            held.set()
            await asyncio.to_thread(arrive.wait)
        return answer

    monkeypatch.setattr(Node, "ask", ask_late)
    with front(1, node_silence_s=60) as double:
        session = result(double, "x = 41", "u")["SessionId"]
        double.clock.advance(minutes=31)
        assert held.wait(10)
        fields = {"ToolId": double.tool_id, "SnapshotType": "Automatic"}
        (snapshot,) = act(double, "ListSessionSnapshots", **fields)["Snapshots"]
        assert session == resume(double, snapshot["SnapshotId"])
        arrive.set()
        assert handled.wait(10)

        assert "42\n" == text(double, "print(x + 1)", "u")
