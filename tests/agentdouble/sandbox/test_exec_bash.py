"""ExecBash commands in the output feed."""

from __future__ import annotations

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import exec_bash
from tests.agentdouble.sandbox.hearing import Heard, listening, to_the_end

pytestmark = pytest.mark.once

STARTED: Heard = ("started", {"run": None, "language": "bash", "execution_count": None})


def put_out(output: str, name: str = "stdout") -> Heard:
    content = {"name": name, "text": output}
    return "output", {"run": None, "msg_type": "stream", "content": content}


def finished(status: str) -> Heard:
    return "finished", {"run": None, "status": status, "context_lost": False}


def test_listeners_receive_commands(shared: Emulator) -> None:
    """A new session works too; output is sent at the end, as answered."""
    with listening(shared, "commands") as events:
        answer = exec_bash(
            shared, "seq 2000; echo e >&2; (exit 3)", "commands", max_output_length=9
        )
        failing = list(to_the_end(events))
        exec_bash(shared, "pwd", "commands", exec_dir="/none")
        refused = list(to_the_end(events))
        exec_bash(shared, "sleep 600", "commands", timeout=1)
        waiting = list(to_the_end(events))

    data = answer["data"]
    errors = put_out(data["stderr"], "stderr")
    assert [STARTED, put_out(data["stdout"]), errors, finished("error")] == failing
    assert [STARTED, finished("error")] == refused
    assert [STARTED, finished("timeout")] == waiting


def test_a_command_in_a_fresh_bash_is_published() -> None:
    """U-EXECBASH-STATE."""
    fresh = Emulator(unknowns={"U-EXECBASH-STATE": "fresh"}, pool_size=0)
    with fresh as double, listening(double, "s1") as events:
        exec_bash(double, "echo fresh")
        assert [STARTED, put_out("fresh\n"), finished("ok")] == list(to_the_end(events))
