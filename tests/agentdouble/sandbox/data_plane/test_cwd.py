from __future__ import annotations

from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import DataPlane, data_plane, text

EXECUTE = "/v1/jupyter/execute"
WHERE = {"python3": "import os; print(os.getcwd())", "javascript": "console.log(Deno.cwd())"}


@pytest.fixture(params=["auto", "none"], scope="module")
def plane(request: pytest.FixtureRequest) -> Any:
    """The data plane of a session with a directory, with isolated and with mapped paths."""
    with Emulator(isolation=request.param) as double:
        plane = data_plane(double)
        plane.bash("mkdir -p ~/work/\U0001f600")
        yield plane


def where(plane: DataPlane, kernel: str = "python3", **fields: Any) -> str:
    """Return the directory in which code runs, as the session names it."""
    data = plane.data(EXECUTE, code=WHERE[kernel], kernel_name=kernel, **fields)
    output = "".join(output["text"] for output in data["outputs"])
    home = plane.bash("cd; pwd -P")["stdout"].strip()
    return output.strip().replace(home, "~")


@pytest.mark.parametrize("kernel", WHERE)
@pytest.mark.parametrize("session", [{}, {"session_id": "one"}], ids=["its own", "a further"])
def test_cwd_applies_to_one_execution(
    plane: DataPlane, kernel: str, session: dict[str, str]
) -> None:
    """The next execution runs in the previous directory."""
    named = {"session_id": f"one-{kernel}"} if session else {}

    folders = [
        where(plane, kernel, cwd="work", **named),
        where(plane, kernel, cwd="/home/gem/work/\U0001f600", **named),
        where(plane, kernel, **named),
    ]

    assert ["~/work", "~/work/\U0001f600", "~"] == folders


def test_a_session_created_with_a_cwd_stays_there(plane: DataPlane) -> None:
    plane.data("/v1/jupyter/sessions/create", session_id="there", cwd="work")

    folders = [where(plane, session_id="there"), where(plane, session_id="there", cwd="/home/gem")]

    assert ["~/work", "~", "~/work"] == [*folders, where(plane, session_id="there")]


def test_code_execute_runs_in_the_given_cwd(plane: DataPlane) -> None:
    answer = plane.data("/v1/code/execute", language="python", code=WHERE["python3"], cwd="work")

    assert answer["stdout"].strip().endswith("/work")


@pytest.mark.parametrize("cwd", ["none", "/dev/null", "work/../../../../../none"])
@pytest.mark.parametrize("path", [EXECUTE, "/v1/jupyter/sessions/create"])
def test_a_missing_directory_is_refused(plane: DataPlane, path: str, cwd: str) -> None:
    """The error names it, and nothing runs."""
    before = plane.get("/v1/jupyter/info").json()["data"]["active_sessions"]
    response = plane.post(path, code="open('/tmp/ran', 'w')", cwd=cwd, session_id="none")

    assert 400 == response.status_code
    assert f"Code cannot run in the directory {cwd!r}: " in response.json()["message"]
    assert before == plane.get("/v1/jupyter/info").json()["data"]["active_sessions"]
    assert "no\n" == plane.bash("test -e /tmp/ran && echo yes || echo no")["stdout"]


@pytest.mark.slow
def test_a_mapped_session_cannot_leave_its_directories() -> None:
    """Without isolation, host directories are refused."""
    with Emulator(isolation="none") as double:
        response = data_plane(double).post(EXECUTE, code="1", cwd="/usr")
        output = text(double, "import os; print(os.getcwd())")

    assert 400 == response.status_code
    assert output.strip().endswith("/home")
