"""A kernelspec for each living session, which opens the session's kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from agentdouble import Emulator, SimpleApp
from tests.agentdouble.calling import act, background, eventually, home_of, run, text
from tests.agentdouble.jupyter.notebook_client import JupyterClient, Notebook

pytestmark = pytest.mark.smoke

ALLOWED = re.compile(r"[a-z0-9._-]+")  # what jupyter_client allows in the name of a kernelspec


@pytest.fixture
def jupyter(double: Emulator) -> Iterator[JupyterClient]:
    """A client of the Jupyter server of a double."""
    client = JupyterClient(double)
    yield client
    client.http.close()


def listed(jupyter: JupyterClient) -> dict[str, str]:
    """Return the names of the kernelspecs of sessions, by what a launcher shows."""
    specs = jupyter.http.get("/kernelspecs").json()["kernelspecs"]
    return {
        spec["spec"]["display_name"]: name
        for name, spec in specs.items()
        if name not in ("python3", "javascript")
    }


def opened(jupyter: JupyterClient, name: str) -> dict[str, Any]:
    """Open a kernelspec, as a click in a launcher does."""
    answer = jupyter.http.post("/kernels", json={"name": name, "env": {}})
    assert 201 == answer.status_code, answer.text
    kernel: dict[str, Any] = answer.json()
    return kernel


def refused(jupyter: JupyterClient, name: str) -> tuple[int, str]:
    """Return the refusal of a kernelspec: its status and message."""
    answer = jupyter.http.post("/kernels", json={"name": name})
    return answer.status_code, answer.json()["message"]


def states(notebook: Notebook) -> str:
    """Return the next state that no message caused."""
    while True:
        message = notebook.wait_for("status")
        if not message["parent_header"]:
            return str(message["content"]["execution_state"])


def test_a_session_is_opened_by_its_kernelspec(double: Emulator, jupyter: JupyterClient) -> None:
    """Its kernel is that of the agent, any number of times, and no other is started."""
    run(double, "x = 41", "coder_ann_s1")
    name = listed(jupyter)["ann / s1 (coder)"]
    spec = jupyter.http.get(f"/kernelspecs/{name}").json()

    kernel, again = opened(jupyter, name), opened(jupyter, name)

    assert (kernel["id"], name) == (again["id"], kernel["name"])
    assert ("python", "coder_ann_s1") == (
        spec["spec"]["language"],
        spec["spec"]["metadata"]["agentdouble"]["user_session_id"],
    )
    with jupyter.attached(kernel["id"]) as notebook:
        assert "42\n" == notebook.text("x += 1; print(x)")
    assert "42\n" == text(double, "print(x)", "coder_ann_s1")
    assert [kernel["id"]] == [it["id"] for it in jupyter.http.get("/kernels").json()]


def test_names_with_underscores_are_told_apart_by_the_hosted_agents() -> None:
    """An agent's name, a user's and a session's can all have one."""
    apps = [SimpleApp("my_agent"), SimpleApp("my")]
    with Emulator(*apps) as double:
        jupyter = JupyterClient(double)
        for name in ("my_agent_ann_s1", "my_agent_ann_b_s1", "my_ann_s1", "tool_caller_ann_s1"):
            act(double, "CreateSession", ToolId=double.tool_id, UserSessionId=name)
        act(double, "CreateSession", ToolId=double.tool_id, UserSessionId="other_one_ann_s1")
        with jupyter.http:
            assert {
                "ann / s1 (my_agent)",
                "ann_b_s1 (my_agent)",
                "ann / s1 (my)",
                "ann / s1 (tool_caller)",
                "other_one_ann_s1 (session)",
            } == set(listed(jupyter))


def test_sixty_sessions_with_any_names_have_names_of_their_own() -> None:
    """Of characters that Jupyter allows, even if the sessions have started no kernel."""
    with Emulator(unknowns={"U-USER-SESSION-CHARS": "printable"}) as double:
        jupyter = JupyterClient(double)
        names = [f'Größe/..%2F {"x" * 150}"<b> {number}' for number in range(57)]
        names += ["日本", "a-b", "a b"]
        for name in names:
            act(double, "CreateSession", ToolId=double.tool_id, UserSessionId=name)
        with jupyter.http:
            specs = listed(jupyter)
            shown = [*specs]

            assert 60 == len(specs) == len(set(specs.values()))
            assert all(ALLOWED.fullmatch(name) for name in specs.values())
            assert "日本 (session)" in shown
            assert all(len(title) < 100 for title in shown)
            kernel = opened(jupyter, specs["日本 (session)"])
            assert "日本" == kernel["user_session_id"]
            with jupyter.attached(kernel["id"]) as notebook:
                assert "2\n" == notebook.text("print(1 + 1)")


def test_sessions_of_several_tools_are_told_apart(double: Emulator, jupyter: JupyterClient) -> None:
    for name in ("first", "second"):
        tool = act(double, "CreateTool", Name=name, ToolType="CodeEnv")["ToolId"]
        act(double, "CreateSession", ToolId=tool, UserSessionId="coder_ann_s1")
    run(double, "1", "coder_ann_s1")
    run(double, "1", "coder_ann_s1", language="javascript")

    specs = listed(jupyter)

    assert 4 == len(set(specs.values()))
    assert {
        "ann / s1 (coder)",
        "ann / s1 (coder, JavaScript)",
        "ann / s1 (coder, first)",
        "ann / s1 (coder, second)",
    } == specs.keys()


def test_kernels_that_jupyter_made_have_no_kernelspec(jupyter: JupyterClient) -> None:
    """Their notebooks are open already."""
    jupyter.new_kernel()

    assert {} == listed(jupyter)


def test_a_kernel_is_opened_while_its_agent_runs_code(
    double: Emulator, jupyter: JupyterClient
) -> None:
    run(double, "x = 1", "agent")
    code = "import pathlib\nwhile not pathlib.Path('go').exists(): pass\nprint('done')"
    (name,) = listed(jupyter).values()
    running = background(lambda: text(double, code, "agent"))
    eventually(
        lambda: jupyter.http.get("/kernels").json()[0]["execution_state"],
        lambda state: state == "busy",
    )

    kernel = opened(jupyter, name)

    assert "busy" == kernel["execution_state"]
    (home_of(double, "agent") / "go").touch()
    assert "done\n" == running.result(60)


def test_a_session_that_ended_before_the_click_says_how(
    double: Emulator, jupyter: JupyterClient
) -> None:
    """And it is no longer listed; a new session with its name is opened by the same kernelspec."""
    session = run(double, "x = 1", "agent")
    (name,) = listed(jupyter).values()
    (info,) = act(double, "ListSessions", ToolId=double.tool_id)["SessionInfos"]
    act(double, "DeleteSession", ToolId=double.tool_id, SessionId=info["SessionId"])

    status, message = refused(jupyter, name)
    unlisted = jupyter.http.get(f"/kernelspecs/{name}")

    assert session
    assert 409 == status
    assert "The session 'agent' has ended: " in message
    assert "can be opened again when an agent uses it again" in message
    assert (404, True) == (unlisted.status_code, "may have ended" in unlisted.json()["message"])
    assert [] == jupyter.http.get("/kernels").json()
    run(double, "x = 2", "agent")
    with jupyter.attached(opened(jupyter, name)["id"]) as notebook:
        assert "2\n" == notebook.text("print(x)")
    assert 404 == refused(jupyter, "session-of-nobody")[0]


def test_a_session_that_sleeps_says_which_snapshot_wakes_it(
    double: Emulator, jupyter: JupyterClient
) -> None:
    run(double, "x = 1", "agent")
    (name,) = listed(jupyter).values()
    double.clock.advance(minutes=31)
    fields = {"ToolId": double.tool_id, "SnapshotType": "Automatic"}
    (snapshot,) = act(double, "ListSessionSnapshots", **fields)["Snapshots"]

    status, message = refused(jupyter, name)

    assert (409, {}) == (status, listed(jupyter))
    assert f"It sleeps: resume it from its snapshot {snapshot['SnapshotId']}" in message
    ids = {"ToolId": double.tool_id, "SnapshotId": snapshot["SnapshotId"]}
    act(double, "ResumeSessionFromSnapshot", **ids)
    with jupyter.attached(opened(jupyter, name)["id"]) as notebook:
        assert "1\n" == notebook.text("print(x)")


def test_the_end_of_a_session_is_told_after_the_last_cell(
    double: Emulator, jupyter: JupyterClient
) -> None:
    """As an output of that cell, and as the state of the kernel, which is listed no more."""
    run(double, "x = 1", "agent")
    kernel = jupyter.kernel_of("agent")

    with jupyter.attached(kernel) as notebook:
        request = notebook.execute("x")
        notebook.until_idle(request)
        double.clock.advance(minutes=31)
        told = notebook.wait_for("error")

        assert request == told["parent_header"]["msg_id"]
        assert ": expired at " in told["content"]["evalue"]
        assert "dead" == states(notebook)
        notebook.send("kernel_info_request", {})
        assert "dead" == states(notebook)
        assert [] == jupyter.http.get("/kernels").json()
        gone = jupyter.http.get(f"/kernels/{kernel}")
        assert (404, True) == (gone.status_code, ": expired at " in gone.json()["message"])


def test_a_kernel_that_dies_between_two_cells_is_told(
    double: Emulator, jupyter: JupyterClient
) -> None:
    run(double, "import os, threading; go = threading.Event()", "agent")
    run(double, "threading.Thread(target=lambda: go.wait() and os._exit(7)).start()", "agent")

    with jupyter.attached(jupyter.kernel_of("agent")) as notebook:
        notebook.run("1")
        notebook.execute("go.set()")
        told = notebook.wait_for("error")

        assert "exited with code 7" in told["content"]["evalue"]
        assert "dead" == states(notebook)


def test_a_notebook_of_jupyter_is_told_too_and_can_be_restarted(
    double: Emulator, jupyter: JupyterClient
) -> None:
    """Not as dead: JupyterLab would not restart it."""
    kernel = jupyter.new_kernel()
    with jupyter.attached(kernel) as notebook:
        request = notebook.execute("1")
        notebook.until_idle(request)
        double.clock.advance(minutes=31)
        told = notebook.wait_for("error")
        notebook.send("kernel_info_request", {})
        reply = notebook.wait_for("kernel_info_reply")["content"]

        assert request == told["parent_header"]["msg_id"]
        assert "Restart the kernel" in told["content"]["evalue"]
        assert ("error", "InvalidResource.Ended") == (reply["status"], reply["ename"])
        assert 200 == jupyter.http.post(f"/kernels/{kernel}/restart").status_code
        assert "2\n" == notebook.text("print(2)")


@pytest.mark.needs("files", "pid_namespace")
def test_a_session_that_returns_to_a_snapshot_restarts_its_kernel(
    double: Emulator, jupyter: JupyterClient
) -> None:
    run(double, "x = 1", "agent")
    (info,) = act(double, "ListSessions", ToolId=double.tool_id)["SessionInfos"]
    ids = {"ToolId": double.tool_id, "SessionId": info["SessionId"]}
    snapshot = act(double, "CreateSessionSnapshot", **ids)["SnapshotId"]
    run(double, "x = 2", "agent")

    with jupyter.attached(jupyter.kernel_of("agent")) as notebook:
        assert "2\n" == notebook.text("print(x)")
        fields = {"ToolId": double.tool_id, "SnapshotId": snapshot, "CreateNewInstance": False}
        act(double, "ResumeSessionFromSnapshot", **fields)

        assert "restarting" == states(notebook)
        assert "1\n" == notebook.text("print(x)")


@pytest.mark.needs("files", "pid_namespace")
def test_sessions_of_one_user_session_have_kernels_of_their_own(
    double: Emulator, jupyter: JupyterClient
) -> None:
    """One that was copied from a snapshot is beside its source, under its own SessionId."""
    run(double, "x = 1", "coder_ann_s1")
    (info,) = act(double, "ListSessions", ToolId=double.tool_id)["SessionInfos"]
    ids = {"ToolId": double.tool_id, "SessionId": info["SessionId"]}
    snapshot = act(double, "CreateSessionSnapshot", **ids)["SnapshotId"]
    fields = {"ToolId": double.tool_id, "SnapshotId": snapshot, "CreateNewInstance": True}
    copy = act(double, "ResumeSessionFromSnapshot", **fields)["SessionId"]

    specs = listed(jupyter)
    first = opened(jupyter, specs["ann / s1 (coder)"])
    second = opened(jupyter, specs[f"ann / s1 (coder) {copy}"])

    assert {first["id"], second["id"]} == {it["id"] for it in jupyter.http.get("/kernels").json()}
    with jupyter.attached(first["id"]) as source, jupyter.attached(second["id"]) as beside:
        source.run("x = 2")
        assert ("2\n", "1\n") == (source.text("print(x)"), beside.text("print(x)"))
        jupyter.http.post(f"/kernels/{second['id']}/restart")
        assert "NameError" == beside.error("x")[0]
        act(double, "DeleteSession", ToolId=double.tool_id, SessionId=copy)
        assert "dead" == states(beside)
        assert "2\n" == source.text("print(x)")
    assert "has ended: " in refused(jupyter, second["name"])[1]


def test_kernelspecs_need_the_token(double: Emulator) -> None:
    run(double, "1", "agent")

    for path in ("kernelspecs", "kernels", "sessions"):
        assert 401 == httpx.get(f"{double.url}/jupyter/api/{path}").status_code
    answer = httpx.post(f"{double.url}/jupyter/api/kernels", json={"name": "session-agent"})
    assert 401 == answer.status_code
