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
    """A double in a process with secrets in its environment."""
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


def test_a_kernel_does_not_inherit_the_server_environment(guarded: Emulator) -> None:
    """Code sees no secret of the double's process, by name or value."""
    code = "import os; print(dict(os.environ))"

    value = text(guarded, code, "environment")

    assert [] == [word for pair in SECRETS.items() for word in pair if word in value]
    assert guarded.credentials.secret_key not in value


def test_a_kernel_has_its_own_directories(shared: Emulator) -> None:
    """Its working directory, HOME and TMPDIR are private to the session."""
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
    """The message names the limit, and variables survive."""
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
def test_code_that_ignores_the_interrupt_is_killed(
    shared: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer says that the context is lost, and the next call is fresh."""
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
def test_a_dead_kernel_is_reported_and_replaced(shared: Emulator, code: str, way: str) -> None:
    """The answer has the cause as an error."""
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


def test_exit_is_an_error_that_keeps_the_session(shared: Emulator) -> None:
    run(shared, "x = 1", "kept")

    inner = run(shared, "import sys; sys.exit(3)", "kept")

    assert "SystemExit" == inner["data"]["outputs"][0]["ename"]
    assert "1\n" == text(shared, "print(x)", "kept")


def test_input_fails_at_once(shared: Emulator) -> None:
    """It does not wait for the timeout."""
    inner = run(shared, "input('name? ')", "kept")

    assert "StdinNotImplementedError" == inner["data"]["outputs"][-1]["ename"]


def test_concurrent_calls_are_served_in_order(shared: Emulator) -> None:
    """U-EXEC-CONCURRENCY: one after the other, in arrival order."""
    run(shared, "seen = []", "kept")
    first = Begun(shared, "kept", "seen.append(1)")
    second = background(lambda: run(shared, "seen.append(2)", "kept"))
    first.go()

    first.future.result(30)
    second.result(30)

    assert "[1, 2]\n" == text(shared, "print(seen)", "kept")


def test_sessions_run_in_parallel(shared: Emulator) -> None:
    """Code waiting in one session does not block another (SBX-04)."""
    waiting = Begun(shared, "side-1", "print('done')")

    assert "2\n" == text(shared, "print(2)", "kept")

    waiting.go()
    assert waiting.future.result(30)["success"]


@pytest.mark.slow
def test_a_concurrent_call_is_refused_if_configured() -> None:
    """U-EXEC-CONCURRENCY refused: 409 only while code runs."""
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
def test_a_timeout_destroys_the_instance_if_configured() -> None:
    """U-EXEC-TIMEOUT instance-lost: status timeout, then a fresh instance."""
    with Emulator(unknowns={"U-EXEC-TIMEOUT": "instance-lost"}) as double:
        before = result(double, "1")
        inner = run(double, "while True: pass", timeout_s=1)
        after = result(double, "1")

    assert "timeout" == inner["data"]["status"]
    assert before["SessionId"] != after["SessionId"]


def test_queued_code_is_not_blamed_for_an_earlier_death(double: Emulator) -> None:
    """The queued call learns that the instance has ended."""
    running = Begun(double, "turn", "import os; os._exit(3)")
    waiting = background(lambda: call(double, body_of(double, "print('never')", "turn")))
    arrived(double, 3)
    running.go()

    assert "error" == running.future.result(30)["data"]["status"]
    error = error_of(waiting.result(30))
    assert (404, "InvalidResource.NotFound") == (error["status"], error["Code"])
    assert "'turn' has ended: the kernel's process exited" in error["Message"]


def arrived(double: Emulator, count: int) -> None:
    """Return once this many requests have been read in full."""
    while sum(entry.request_body != "" for entry in double.journal.entries()) < count:
        http.get(f"{double.url}/_emulator/health")
