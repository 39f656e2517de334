from __future__ import annotations

import signal
from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.processes.fork_server import processes
from tests.agentdouble.calling import (
    DataPlane,
    data_plane,
    has_gone,
    http,
    output,
    text,
)

pytestmark = pytest.mark.smoke

EXECUTE = "/v1/jupyter/execute"


@pytest.fixture
def plane(double: Emulator) -> DataPlane:
    """The data plane of a session that has not run any code."""
    return data_plane(double)


def printed(plane: DataPlane, code: str, **fields: Any) -> str:
    data = plane.data(EXECUTE, code=code, **fields)
    return "".join(output["text"] for output in data["outputs"] if output["name"] == "stdout")


def kernel_of(plane: DataPlane, session_id: str) -> int:
    return plane.pid_outside(
        int(printed(plane, "import os; print(os.getpid())", session_id=session_id))
    )


def test_code_runs_in_the_kernel_of_invoke_tool(double: Emulator, plane: DataPlane) -> None:
    """Both share one context."""
    text(double, "x = 41")

    answer = plane.post(EXECUTE, code="x + 1").json()

    data = answer["data"]
    assert data.pop("msg_id")
    assert {
        "success": True,
        "message": "Code executed successfully",
        "data": {
            "kernel_name": "python3",
            "session_id": plane.query["faasInstanceName"],
            "status": "ok",
            "execution_count": 2,
            "outputs": [output("execute_result", data={"text/plain": "42"}, execution_count=2)],
            "code": "x + 1",
        },
        "hint": None,
    } == answer


def test_a_named_session_has_its_own_context(plane: DataPlane) -> None:
    """It shares files with the others."""
    plane.data(EXECUTE, code="x = 1; open('f', 'w').write('shared')")
    plane.data(EXECUTE, code="x = 2", session_id="other")

    assert "1\n" == printed(plane, "print(x)")
    assert "2 shared\n" == printed(plane, "print(x, open('f').read())", session_id="other")


def test_an_exception_is_returned_as_a_result(plane: DataPlane) -> None:
    """InvokeTool does the same."""
    answer = plane.post(EXECUTE, code="1 / 0", session_id="other").json()

    assert (False, "error", "ZeroDivisionError") == (
        answer["success"],
        answer["data"]["status"],
        answer["data"]["outputs"][0]["ename"],
    )


def test_sessions_are_created_listed_and_closed(plane: DataPlane) -> None:
    """Closing a session ends its kernel."""
    session = plane.data("/v1/jupyter/sessions/create", session_id="one")
    plane.data("/v1/jupyter/sessions/create")
    pid = kernel_of(plane, "one")
    listed = plane.get("/v1/jupyter/sessions").json()["data"]["sessions"]
    active = plane.get("/v1/jupyter/info").json()["data"]["active_sessions"]
    url = f"{plane.url}/v1/jupyter/sessions"
    closed = http.delete(f"{url}/one", params=plane.query)
    again = http.delete(f"{url}/one", params=plane.query)
    http.delete(url, params=plane.query)

    assert ("one", "python3") == (session["session_id"], session["kernel_name"])
    assert (2, 2, "python3") == (len(listed), active, listed["one"]["kernel_name"])
    assert (200, 404) == (closed.status_code, again.status_code)
    assert has_gone(pid, timeout_s=30)
    assert {} == plane.get("/v1/jupyter/sessions").json()["data"]["sessions"]


def test_sessions_are_limited(plane: DataPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the limit."""
    monkeypatch.setattr("agentdouble.sandbox.named_kernels.MOST", 1)
    plane.data("/v1/jupyter/sessions/create", session_id="one")

    response = plane.post("/v1/jupyter/sessions/create", session_id="two")

    assert (429, "Too many Jupyter sessions (limit 1): close one.") == (
        response.status_code,
        response.json()["message"],
    )


def test_a_session_restarts_after_its_kernel_dies(double: Emulator, plane: DataPlane) -> None:
    """The instance and its own kernel survive."""
    text(double, "x = 1")
    pid = kernel_of(plane, "one")
    killed = plane.post(EXECUTE, code="import os; os._exit(3)", session_id="one").json()

    assert has_gone(pid, timeout_s=30)
    assert "exited with code 3" in killed["message"]
    assert "False\n" == printed(plane, "print('os' in globals())", session_id="one")
    assert "1\n" == text(double, "print(x)")

    processes.send(kernel_of(plane, "one"), signal.SIGKILL)
    while "one" in plane.get("/v1/jupyter/sessions").json()["data"]["sessions"]:
        pass
    assert "new\n" == printed(plane, "print('new')", session_id="one")


def test_a_session_can_run_another_language(plane: DataPlane) -> None:
    """It uses the same name as InvokeTool."""
    assert "42\n" == printed(plane, "console.log(6 * 7)", kernel_name="javascript")


@pytest.mark.parametrize(
    ("language", "code"), [("python", "print(6 * 7)"), ("javascript", "console.log(6 * 7)")]
)
def test_code_execute_runs_each_language(plane: DataPlane, language: str, code: str) -> None:
    """stdout and stderr are separate."""
    data = plane.data("/v1/code/execute", language=language, code=code)

    assert (language, "ok", "42\n", "", 0, None, None) == tuple(
        data[n]
        for n in ("language", "status", "stdout", "stderr", "exit_code", "traceback", "session_id")
    )


def test_code_execute_keeps_state_only_if_stateful(plane: DataPlane) -> None:
    """Otherwise each call starts fresh and leaves no session."""
    execute = "/v1/code/execute"
    first = plane.data(execute, language="python", code="x = 1", stateful=True)
    stopped = plane.data(
        execute, language="python", code="print(x)", stateful=True, session_id=first["session_id"]
    )
    lost = plane.post(execute, language="python", code="x").json()

    assert "1\n" == stopped["stdout"]
    assert (False, 1) == (lost["success"], lost["data"]["exit_code"])
    assert "NameError" in lost["data"]["traceback"][-1]
    listed = plane.get("/v1/jupyter/sessions").json()["data"]["sessions"]
    assert [first["session_id"]] == list(listed)


def test_info_lists_kernels_languages_and_limits(plane: DataPlane) -> None:
    jupyter = plane.get("/v1/jupyter/info").json()["data"]
    code = plane.get("/v1/code/info").json()["data"]["languages"]

    assert ("python3", 16, 1800) == tuple(
        jupyter[name] for name in ("default_kernel", "max_sessions", "session_timeout_seconds")
    )
    assert "javascript" in jupyter["available_kernels"]
    assert [("python", 30, 300), ("javascript", 30, 300)] == [
        (item["language"], item["default_timeout"], item["max_timeout"]) for item in code
    ]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("jupyter/execute", {}, 422),
        ("jupyter/execute", {"code": " "}, 422),
        ("jupyter/execute", {"code": "a\0"}, 422),
        ("jupyter/execute", {"code": "1", "timeout": 0}, 422),
        ("jupyter/execute", {"code": "1", "timeout": 301}, 400),
        ("jupyter/execute", {"code": "x" * (2 << 20)}, 413),
        ("jupyter/execute", {"code": "1", "kernel_name": "cobol"}, 400),
        ("jupyter/execute", {"code": "1", "session_id": ""}, 422),
        ("jupyter/execute", {"code": "1", "cwd": "none"}, 400),
        ("jupyter/execute", {"code": "1", "cwd": "a\0"}, 422),
        ("jupyter/sessions/create", {"cwd": "/dev/null"}, 400),
        ("jupyter/sessions/create", {"kernel_name": "cobol"}, 400),
        ("code/execute", {"language": "cobol", "code": "1"}, 422),
        ("code/execute", {"code": "1"}, 422),
    ],
    ids=lambda value: str(value)[:50],
)
def test_invalid_code_requests_are_refused(
    shared: Emulator, path: str, body: dict[str, Any], status: int
) -> None:
    """The status tells a bad body from an unsupported value."""
    assert status == data_plane(shared, "door").post(f"/v1/{path}", **body).status_code
