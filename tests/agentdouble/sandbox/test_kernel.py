from __future__ import annotations

import os
from collections.abc import Iterator

import psutil
import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import (
    Begun,
    background,
    body_of,
    call,
    error_of,
    home_of,
    http,
    output,
    result,
    run,
    text,
)

SECRETS = {
    "PLATFORM_ACCESS_KEY": "s3cret-access",
    "PLATFORM_SECRET_KEY": "s3cret-secret",
    "API_KEY": "s3cret-model-key",
    "AWS_SECRET_ACCESS_KEY": "s3cret-cloud",
    "VOLCENGINE_SECRET_KEY": "s3cret-volc",
    "GITHUB_TOKEN": "s3cret-github",
}


@pytest.fixture(scope="module")
def guarded() -> Iterator[Emulator]:
    """A double in a process whose environment is full of secrets."""
    before = dict(os.environ)
    os.environ.update(SECRETS)
    try:
        with Emulator() as double:
            yield double
    finally:
        os.environ.clear()
        os.environ.update(before)


def pid_of(double: Emulator, session: str) -> int:
    sessions = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]
    (pid,) = next(s["pids"] for s in sessions if s["UserSessionId"] == session)
    return int(pid)


def test_a_kernel_s_environment_holds_nothing_of_the_server_s(guarded: Emulator) -> None:
    """No secret of the process that runs the double is visible to code, by name or by value."""
    code = "import os; print(dict(os.environ))"

    value = text(guarded, code, "environment")

    assert [] == [word for pair in SECRETS.items() for word in pair if word in value]
    assert guarded.credentials.secret_key not in value


def test_a_kernel_has_directories_of_its_own(shared: Emulator) -> None:
    """Working directory, HOME and TMPDIR are the session's, and nobody else may look in."""
    code = """
import os, stat, tempfile
open("here", "w").close()
print(os.getcwd() == os.environ["HOME"], tempfile.gettempdir() == os.environ["TMPDIR"])
print(oct(stat.S_IMODE(os.stat(os.getcwd()).st_mode)))
"""
    text(shared, "1", "home-2")

    assert "True True\n0o700\n" == text(shared, code, "kept")
    assert (home_of(shared, "kept") / "here").exists()
    assert home_of(shared, "kept") != home_of(shared, "home-2")


def test_a_timeout_interrupts_and_keeps_the_context(shared: Emulator) -> None:
    """Status timeout, the time in the message, and the variables are still there."""
    before = result(shared, "x = 42", "timeout")

    inner = run(shared, "print('begun')\nwhile True: pass", "timeout", timeout_s=1)

    assert (
        False,
        "timeout",
        "The code ran longer than its timeout of 1 s and was interrupted; the context is kept.",
        2,
    ) == (
        inner["success"],
        inner["data"]["status"],
        inner["message"],
        inner["data"]["execution_count"],
    )
    printed, error = inner["data"]["outputs"]
    assert output("stream", name="stdout", text="begun\n") == printed
    assert "KeyboardInterrupt" == error["ename"]
    assert "42\n" == text(shared, "print(x)", "timeout")
    assert before["SessionId"] == result(shared, "1", "timeout")["SessionId"]


@pytest.mark.slow
def test_code_that_swallows_the_interrupt_is_killed(
    shared: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer says that the context is lost, and the next call gets a fresh instance."""
    monkeypatch.setattr("agentdouble.sandbox.kernel.INTERRUPT_GRACE_S", 2)
    before = result(shared, "x = 1", "swallows")
    pid = pid_of(shared, "swallows")
    code = """
import time
while True:
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        print("no")
"""

    inner = run(shared, code, "swallows", timeout_s=1)
    after = result(shared, "print('x' in globals())", "swallows")

    assert ("timeout", 2, [output("stream", name="stdout", text="no\n")]) == (
        inner["data"]["status"],
        inner["data"]["execution_count"],
        inner["data"]["outputs"],
    )
    assert inner["message"].endswith("was killed; the context is lost.")
    assert not psutil.pid_exists(pid)
    assert before["SessionId"] != after["SessionId"]
    assert '"text": "False\\n"' in after["Result"]


@pytest.mark.parametrize(
    ("code", "way"),
    [
        ("import os; os._exit(3)", "exited with code 3"),
        ("import os; os.kill(os.getpid(), 9)", "was killed by signal 9 (SIGKILL)"),
    ],
)
def test_a_kernel_that_dies_is_answered_with_what_happened(
    shared: Emulator, code: str, way: str
) -> None:
    """The answer has the cause as an error, and the next call gets a fresh instance."""
    session = "dies-" + way.split()[-1].strip("()")
    before = result(shared, "x = 1", session)

    inner = run(shared, code, session)
    after = result(shared, "print('x' in globals())", session)

    died = f"the kernel's process {way}; the session's context is lost"
    assert (
        False,
        f"Code execution failed: {died}",
        "error",
        2,
        [output("error", ename="KernelDied", evalue=died, traceback=[f"KernelDied: {died}"])],
    ) == (
        inner["success"],
        inner["message"],
        inner["data"]["status"],
        inner["data"]["execution_count"],
        inner["data"]["outputs"],
    )
    assert before["SessionId"] != after["SessionId"]
    assert '"text": "False\\n"' in after["Result"]


def test_exit_is_an_error_and_not_the_end(shared: Emulator) -> None:
    """sys.exit() fails, and the session lives on."""
    run(shared, "x = 1", "kept")

    inner = run(shared, "import sys; sys.exit(3)", "kept")

    assert "SystemExit" == inner["data"]["outputs"][0]["ename"]
    assert "1\n" == text(shared, "print(x)", "kept")


def test_input_is_an_error_at_once(shared: Emulator) -> None:
    """Nobody answers input(): the code is told so, and does not wait for its timeout."""
    inner = run(shared, "input('name? ')", "kept")

    assert "StdinNotImplementedError" == inner["data"]["outputs"][-1]["ename"]


def test_calls_at_once_are_served_in_order(shared: Emulator) -> None:
    """U-EXEC-CONCURRENCY: one after the other, in arrival order."""
    run(shared, "seen = []", "kept")
    first = Begun(shared, "kept", "seen.append(1)")
    second = background(lambda: run(shared, "seen.append(2)", "kept"))
    first.go()

    first.future.result(30)
    second.result(30)

    assert "[1, 2]\n" == text(shared, "print(seen)", "kept")


def test_sessions_run_side_by_side(shared: Emulator) -> None:
    """Code that waits in one session does not keep another waiting (SBX-04)."""
    waiting = Begun(shared, "side-1", "print('done')")

    assert "2\n" == text(shared, "print(2)", "kept")

    waiting.go()
    assert waiting.future.result(30)["success"]


@pytest.mark.slow
def test_a_second_call_is_refused_where_the_ledger_says_so() -> None:
    """U-EXEC-CONCURRENCY refused: 409 while code runs, and served again afterwards."""
    with Emulator(unknowns={"U-EXEC-CONCURRENCY": "refused"}) as double:
        running = Begun(double, "busy", "1")
        error = error_of(call(double, body_of(double, "1", "busy")))
        running.go()
        running.future.result(30)
        after = run(double, "1", "busy")

    assert {
        "status": 409,
        "Code": "InvalidResource.Busy",
        "Message": "The instance of session 'busy' is running code.",
    } == error
    assert after["success"]


@pytest.mark.slow
def test_a_timeout_destroys_the_instance_where_the_ledger_says_so() -> None:
    """U-EXEC-TIMEOUT instance-lost: status timeout, then a fresh instance."""
    with Emulator(unknowns={"U-EXEC-TIMEOUT": "instance-lost"}) as double:
        before = result(double, "1")
        inner = run(double, "while True: pass", timeout_s=1)
        after = result(double, "1")

    assert "timeout" == inner["data"]["status"]
    assert before["SessionId"] != after["SessionId"]


def test_code_that_waits_its_turn_is_not_blamed_for_the_death_before_it(double: Emulator) -> None:
    """The call that waited is told that the instance has ended, not that its own code died."""
    running = Begun(double, "turn", "import os; os._exit(3)")
    waiting = background(lambda: call(double, body_of(double, "print('never')", "turn")))
    arrived(double, 3)
    running.go()

    assert "error" == running.future.result(30)["data"]["status"]
    error = error_of(waiting.result(30))
    assert (404, "InvalidResource.NotFound") == (error["status"], error["Code"])
    assert (
        "'turn' has ended: Code execution failed: the kernel's process exited" in error["Message"]
    )


def arrived(double: Emulator, count: int) -> None:
    """Return when so many requests have been read whole."""
    while sum(entry.request_body != "" for entry in double.journal.entries()) < count:
        http.get(f"{double.url}/_emulator/health")
