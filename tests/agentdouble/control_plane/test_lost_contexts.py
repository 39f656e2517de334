"""A context that ends: the call that ended it says so, or the first result of the next instance."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import (
    act,
    background,
    body_of,
    call,
    data_plane,
    error_of,
    eventually,
    exec_bash,
    home_of,
    pids_of,
    result,
    run,
    sessions_of,
    text,
)

HALF_AN_HOUR = dt.timedelta(minutes=31)
NEW = "This is a new instance of the session, without the context of the one before"

# The kernel answers these before it ends: "ask_exit" is in its reply.
EXITS = {
    "exit()": "exit()",
    "quit()": "print('bye'); quit()",
    "the bare name": "exit",
    "the shell's": "get_ipython().ask_exit()",
    "in a function": "def leave():\n    exit()\nleave()",
    "before an error": "exit()\n1 / 0",
    "in a coroutine": "import asyncio\nasync def leave(): exit()\nawait leave()",
}
# It does not answer these.
DEATHS = {
    "os._exit": "import os; os._exit(3)",
    "SIGTERM": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "SIGKILL": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "a crash": "import ctypes; ctypes.string_at(0)",
    "a thread": "import os, threading, time\n"
    "threading.Timer(0.01, os._exit, (3,)).start()\ntime.sleep(60)",
    "a command": "import os\nos.system(f'kill -9 {os.getpid()}')",
}
# It answers, and ends while nothing runs; each needs a moment that a pipe ends.
LATER = "import os, threading\nos.mkfifo('end')\ndef end():\n    open('end').close()\n    {}\n"
LATER += "threading.Thread(target=end).start()"


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    with Emulator() as double:
        yield double


def lost(inner: dict[str, Any]) -> None:
    """Check that a result says that its code has ended its context."""
    assert (False, "error") == (inner["success"], inner["data"]["status"])
    error = inner["data"]["outputs"][-1]
    assert "KernelDied" == error["ename"]
    assert "the session's context is lost" in error["evalue"]
    assert error["evalue"] in inner["message"]


@pytest.mark.parametrize("code", [*EXITS.values(), *DEATHS.values()], ids=[*EXITS, *DEATHS])
def test_the_call_that_ends_its_kernel_says_so(double: Emulator, code: str) -> None:
    """Then the next call has a new instance, and says that it is new; the one after does not."""
    first = result(double, "kept = 1", "ends")["SessionId"]

    lost(run(double, code, "ends"))

    after = run(double, "'kept' in globals()", "ends")
    assert first != after["data"]["session_id"]
    assert {"text/plain": "False"} == after["data"]["outputs"][0]["data"]
    assert after["message"].startswith(f"Code executed successfully. {NEW}, which has ended: ")
    assert "Code executed successfully" == run(double, "1", "ends")["message"]


def test_outputs_before_the_end_are_kept(double: Emulator) -> None:
    outputs = run(double, EXITS["quit()"], "outputs")["data"]["outputs"]

    assert ["bye\n", None] == [output["text"] for output in outputs]


@pytest.mark.parametrize(
    "code", ["exit(True)", "import sys; sys.exit(3)", "raise SystemExit", "%reset -f"]
)
def test_what_does_not_end_a_kernel(double: Emulator, code: str) -> None:
    """As in a stock kernel, SystemExit is an error of the cell."""
    before = result(double, "1", "stays")["SessionId"]

    message = run(double, code, "stays")["message"]

    assert "lost" not in message
    assert before == result(double, "1", "stays")["SessionId"]


@pytest.mark.parametrize("ending", ["os._exit(5)", "os.kill(os.getpid(), 15)"])
def test_a_kernel_that_ends_between_two_calls(double: Emulator, ending: str) -> None:
    """The next result says that its instance is new, and why; its code ran once, there."""
    text(double, LATER.format(ending), "between")
    with (home_of(double, "between") / "end").open("w"):
        pass
    eventually(lambda: pids_of_all(double, "between"), lambda pids: not pids)

    after = run(double, "6 * 7", "between")

    assert {"text/plain": "42"} == after["data"]["outputs"][0]["data"]
    assert f"{NEW}, which has ended: the kernel's process " in after["message"]


def pids_of_all(double: Emulator, session: str) -> list[int]:
    try:
        return pids_of(double, session)
    except StopIteration:
        return []


@contextmanager
def stopped(double: Emulator, session: str) -> Iterator[None]:
    """Stop the kernel of a session, and kill it when a request for it has arrived."""
    text(double, "1", session)
    (pid,) = pids_of(double, session)
    psutil.Process(pid).suspend()
    (living,) = (it for it in sessions_of(double).living() if it.key.user_session_id == session)
    busy = background(lambda: eventually(lambda: living.turn.busy, bool))
    kernel = living.processes.kernels["python3"]

    def kill() -> None:
        busy.result()
        eventually(lambda: kernel._request, bool)
        psutil.Process(pid).kill()

    killed = background(kill)
    yield
    killed.result()


def test_code_that_has_not_begun_runs_once_in_a_new_instance(double: Emulator) -> None:
    """Its kernel ends before it reads the request: the code is not to blame."""
    with stopped(double, "unread"):
        after = run(double, "open('ran', 'a').write('1'); print(open('ran').read())", "unread")

    assert ["1\n"] == [output["text"] for output in after["data"]["outputs"]]
    assert (
        f"{NEW}, which has ended: the kernel's process was killed by signal 9" in after["message"]
    )


def test_code_that_names_its_instance_is_not_moved_to_another(double: Emulator) -> None:
    """It is refused, and was not run."""
    session = result(double, "1", "named")["SessionId"]
    body = {**body_of(double, "1"), "UserSessionId": None, "SessionId": session}

    with stopped(double, "named"):
        error = error_of(call(double, body))

    assert (404, "InvalidResource.NotFound") == (error["status"], error["Code"])
    assert "killed by signal 9 (SIGKILL), before this code began" in error["Message"]


@pytest.mark.parametrize("kind", ["code", "bash", "javascript"])
def test_an_instance_after_one_that_expired_says_so(double: Emulator, kind: str) -> None:
    def message() -> str:
        if kind == "bash":
            return str(exec_bash(double, "true", "expires")["message"])
        language = {"language": "javascript"} if kind == "javascript" else {}
        return str(run(double, "1", "expires", **language)["message"])

    first = message()
    double.clock.advance(HALF_AN_HOUR)

    assert f"{NEW}, which has ended: expired at " in message()
    assert first.partition(". ")[0] == message()


def test_an_instance_after_one_that_was_deleted_says_so(double: Emulator) -> None:
    session = result(double, "1", "deleted")["SessionId"]
    act(double, "DeleteSession", ToolId=double.tool_id, SessionId=session)

    assert "has ended: deleted by caller" in run(double, "1", "deleted")["message"]


@pytest.mark.parametrize("command", ["exit 3", "exec true", "kill -9 $$", "set -e; false"])
def test_a_command_that_ends_its_bash_says_so(double: Emulator, command: str) -> None:
    """The next command has a new bash; without such an end, nothing is said."""
    exec_bash(double, "kept=1", "bash")

    message = exec_bash(double, command, "bash")["message"]

    assert "its bash ended with it, and the bash's variables and directory are lost" in message
    after = exec_bash(double, "echo $kept", "bash")
    assert ("Command completed with exit code 0", "\n") == (
        after["message"],
        after["data"]["stdout"],
    )
    assert "bash" not in exec_bash(double, "(exit 3)", "bash")["message"]


@pytest.mark.parametrize(
    "code",
    [
        "Deno.exit(3)",
        "process.exit(3)",
        "import('node:process').then((p) => p.exit(3)); await new Promise(() => {})",
    ],
)
def test_javascript_that_ends_its_engine_says_so(double: Emulator, code: str) -> None:
    inner = run(double, code, "js", language="javascript")

    assert (False, "Exit") == (inner["success"], inner["data"]["outputs"][-1]["ename"])
    assert "the JavaScript engine exited with code 3; its variables are lost" in inner["message"]


def engines(double: Emulator, session: str) -> list[psutil.Process]:
    kernels = map(psutil.Process, pids_of(double, session))
    return [child for kernel in kernels for child in kernel.children() if child.name() == "deno"]


def test_an_engine_that_ends_between_two_cells(double: Emulator) -> None:
    """The next cell says so in its own result, and the session goes on."""
    text(double, "kept = 1", "engine")
    # not a named pipe: to open one stops the whole of Deno 2.9.0
    code = """
        globalThis.kept = 1;
        setInterval(() => Deno.stat('end').then(() => Deno.exit(3), () => null), 20);
        null
    """
    run(double, code, "engine", language="javascript")
    text(double, "open('end', 'w').close()", "engine")
    eventually(lambda: engines(double, "engine"), lambda alive: not alive)

    outputs = run(double, "typeof kept", "engine", language="javascript")["data"]["outputs"]

    said = "Between two cells, the JavaScript engine exited with code 3. Its variables are lost"
    assert said in (outputs[0]["text"] or "")
    assert {"text/plain": '"undefined"'} == outputs[1]["data"]
    assert "1\n" == text(double, "print(kept)", "engine")


def test_a_named_kernel_that_ends(double: Emulator) -> None:
    """``/v1/jupyter``: the kernel that ended, and the one that replaces it."""
    plane = data_plane(double, "plane")

    def execute(code: str) -> dict[str, Any]:
        answer: dict[str, Any] = plane.post(
            "/v1/jupyter/execute", code=code, session_id="mine"
        ).json()
        return answer

    execute("kept = 1")
    ended = execute("exit()")
    assert "KernelDied" == ended["data"]["outputs"][-1]["ename"]
    assert "NameError" == execute("kept")["data"]["outputs"][-1]["ename"]
    execute(LATER.format("os._exit(5)"))
    plane.bash("echo > end")
    replaced = eventually(lambda: execute("1"), lambda answer: answer["success"])
    assert "This is a new kernel, without the context of the one before" in replaced["message"]
