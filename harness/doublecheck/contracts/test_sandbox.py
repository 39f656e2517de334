"""Checks of session instances and of the results of code (SBX)."""

from __future__ import annotations

import re

import pytest

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.wire import Sandbox
from doublecheck.target import pytest_options
from doublecheck.values.sandbox import CodeResult, Output


@clause("SBX-01", writes=True)
def test_the_first_call_creates_the_instance(sandbox: Sandbox) -> None:
    """A new session id runs code at once, in a new instance."""
    first = sandbox.run("print('kept' in globals())")

    assert ("ok", "False\n", 1) == (first.status, first.stdout, first.execution_count)
    assert re.fullmatch(r"s-[\w-]+", first.session_id), first.session_id


@clause("SBX-02", writes=True)
def test_the_same_session_is_reused(sandbox: Sandbox) -> None:
    """A second execution finds the variable of the first, in the same instance."""
    first = sandbox.run("kept = 41")
    second = sandbox.run("print(kept + 1)")

    assert ("42\n", first.session_id) == (second.stdout, second.session_id)


@clause("SBX-03", writes=True)
def test_the_instance_is_destroyed_after_thirty_minutes(
    sandbox: Sandbox, request: pytest.FixtureRequest
) -> None:
    """A minute before that the instance runs and has its state; later the session has a new one.

    On a fast machine a second would be enough, but the platform's clock continues meanwhile.
    """
    platform = sandbox.platform
    if platform.target.kind == "live":
        pytest.skip("not run: takes 30 minutes")
    if pytest_options.runs_already(request.config) and not platform.target.allow_writes:
        pytest.skip("not run: moves the clock of a double that ran before the checks did")
    first = sandbox.run("kept = 41", ttl_s=None)
    try:
        platform.clock.advance(minutes=29, seconds=-_age_s(platform, first))
        before = sandbox.run("print(kept + 1)", ttl_s=None)
        platform.clock.advance(minutes=1)
        after = sandbox.run("print('kept' in globals())", ttl_s=None)
    finally:
        platform.reset()

    assert ("42\n", first.session_id) == (before.stdout, before.session_id)
    assert ("False\n", 1) == (after.stdout, after.execution_count)
    assert first.session_id != after.session_id


@clause("SBX-04", writes=True)
def test_sessions_do_not_interfere(sandbox: Sandbox) -> None:
    """Two sessions give one name two values, and each keeps its own."""
    other = sandbox.with_session("other")
    ids = [sandbox.run("x = 1").session_id, other.run("x = 2").session_id]

    seen = [sandbox.run("print(x)").stdout, other.run("print(x)").stdout]

    assert ["1\n", "2\n"] == seen
    assert 2 == len(set(ids)), ids


@clause("SBX-05", writes=True)
def test_standard_output_is_a_stream(sandbox: Sandbox) -> None:
    """Printed text arrives in one output, of type stream and name stdout."""
    result = sandbox.run("print('hello')\nprint('Grüße')")

    assert (Output("stream", name="stdout", text="hello\nGrüße\n"),) == result.outputs


@clause("SBX-06", writes=True)
def test_a_failure_tells_what_happened(sandbox: Sandbox) -> None:
    """An output has name, value and traceback of the error, and the status is not ok."""
    result = sandbox.run("print('before')\n1 / 0")

    assert result.error is not None, result.outputs
    assert ("ZeroDivisionError", "division by zero") == (result.error.ename, result.error.evalue)
    assert "ZeroDivisionError" in result.error.traceback
    assert result.status != "ok"


@clause("SBX-07", writes=True)
def test_executions_are_counted(sandbox: Sandbox) -> None:
    """The count starts at 1 and increases with every execution of the instance."""
    assert [1, 2, 3] == [sandbox.run("pass").execution_count for _ in range(3)]


@clause("SBX-08", writes=True)
def test_python_and_javascript_are_spoken(sandbox: Sandbox) -> None:
    """Each language runs code that the other could not, and keeps its own state in one session."""
    code = {
        "python3": ("kept = [n for n in range(3)]", "print(sum(kept), type(kept).__name__)"),
        "javascript": ("let kept = (n) => n * 7", "console.log(kept(6), typeof kept)"),
    }
    firsts = [sandbox.run(first, language) for language, (first, _) in code.items()]
    seconds = [sandbox.run(second, language) for language, (_, second) in code.items()]

    assert ["ok", "ok"] == [result.status for result in firsts], firsts
    assert ["3 list\n", "42 function\n"] == [result.stdout for result in seconds]
    assert 1 == len({result.session_id for result in (*firsts, *seconds)})


@clause("SBX-09", writes=True)
def test_a_terminal_works_in_the_session_s_sandbox(sandbox: Sandbox) -> None:
    """A command sees the files of the session's code, and its failure is reported."""
    code = sandbox.run("with open('from-code', 'w') as file: print('6 * 7', end='', file=file)")

    works = sandbox.exec_bash("echo $(( $(cat from-code) ))")
    fails = sandbox.exec_bash("echo out; echo err >&2; (exit 3)")

    assert ("completed", 0, "42\n", code.session_id) == (
        works.status,
        works.exit_code,
        works.stdout,
        works.session_id,
    )
    assert (3, "out\n", "err\n") == (fails.exit_code, fails.stdout, fails.stderr)


@clause("SBX-10", writes=True)
def test_files_go_in_and_out(sandbox: Sandbox) -> None:
    """Code sees the uploaded file, byte by byte, and a file that it writes can be downloaded."""
    content = bytes(range(256)) * 4

    path = sandbox.upload("/home/gem/doublecheck/in.bin", content)
    seen = sandbox.run(
        f"data = open({path!r}, 'rb').read()\n"
        "print(len(data), sum(data))\n"
        "written = open('/home/gem/doublecheck/out.bin', 'wb').write(data[::-1])"
    )

    assert f"1024 {sum(content)}\n" == seen.stdout, seen
    assert content[::-1] == sandbox.download("/home/gem/doublecheck/out.bin")


@clause("SBX-12", writes=True)
def test_users_with_one_session_id_are_separate(sandbox: Sandbox) -> None:
    """Another user's session with the same name is another instance."""
    first = sandbox.run("kept = 41")
    other = sandbox.with_user("somebody-else").run("print('kept' in globals())")

    assert "False\n" == other.stdout
    assert first.session_id != other.session_id


def _age_s(platform: Platform, result: CodeResult) -> float:
    """Return the age of the instance in seconds, on the platform's clock."""
    created_at = {session.session_id: session.created_at for session in platform.sessions()}
    return (platform.clock.now() - created_at[result.session_id]).total_seconds()
