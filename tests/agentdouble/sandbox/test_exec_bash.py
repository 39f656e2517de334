"""Commands whose output is heard while they run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import background, exec_bash, home_of, text
from tests.agentdouble.sandbox.hearing import Heard, listening, to_the_end

pytestmark = pytest.mark.once

STARTED: Heard = ("started", {"run": None, "language": "bash", "execution_count": None})
WAITS = "echo first; echo > begun; cat go; echo second"


def put_out(output: str, name: str = "stdout") -> Heard:
    content = {"name": name, "text": output}
    return "output", {"run": None, "msg_type": "stream", "content": content}


def finished(status: str) -> Heard:
    return "finished", {"run": None, "status": status, "context_lost": False}


def as_answered(heard: Iterable[Heard]) -> dict[str, str]:
    """Return what a notebook has of each stream in the end."""
    shown = {"stdout": "", "stderr": ""}
    for kind, data in heard:
        if kind == "output" and data["msg_type"] == "clear_output":
            shown = {"stdout": "", "stderr": ""}
        elif kind == "output":
            shown[data["content"]["name"]] += data["content"]["text"]
    return shown


@pytest.mark.slow
def test_who_listens_hears_of_commands(shared: Emulator) -> None:
    """From the start to the end, of a session that had no instance before."""
    with listening(shared, "commands-all") as events:
        exec_bash(shared, "echo out; (exit 3)", "commands-all")
        first = list(to_the_end(events))
        exec_bash(shared, "echo err >&2", "commands-all")
        second = list(to_the_end(events))

    assert [STARTED, put_out("out\n"), finished("error")] == first
    assert [STARTED, put_out("err\n", "stderr"), finished("ok")] == second


def test_output_is_heard_while_a_command_runs(shared: Emulator) -> None:
    """The first of it is here before the command is let go on."""
    session = "commands-live"
    text(shared, "import os; os.mkfifo('begun'); os.mkfifo('go')", session)
    with listening(shared, session) as events:
        answered = background(lambda: exec_bash(shared, WAITS, session))
        (home_of(shared, session) / "begun").read_text()
        assert [STARTED, put_out("first\n")] == [next(events), next(events)]
        (home_of(shared, session) / "go").write_text("let go\n")
        assert [put_out("let go\nsecond\n"), finished("ok")] == list(to_the_end(events))

    assert "first\nlet go\nsecond\n" == answered.result()["data"]["stdout"]


def test_who_comes_late_hears_it_at_the_end(shared: Emulator) -> None:
    """A command that began when nobody listened is told of in one piece."""
    session = "commands-late"
    text(shared, "import os; os.mkfifo('begun'); os.mkfifo('go')", session)
    answered = background(lambda: exec_bash(shared, WAITS, session))
    (home_of(shared, session) / "begun").read_text()
    with listening(shared, session) as events:
        (home_of(shared, session) / "go").write_text("")
        assert [put_out("first\nsecond\n"), finished("ok")] == list(to_the_end(events))

    assert answered.result()["success"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "fields", "status"),
    [
        pytest.param("seq 2000; seq 3000 >&2", {"max_output_length": 1000}, "ok", id="too long"),
        pytest.param("seq 2000", {"max_output_length": 0}, "ok", id="no limit"),
        pytest.param("printf 'a\\xffb\\xc3'", {}, "ok", id="no UTF-8"),
        pytest.param(
            "sleep 0.1; printf 'Gr\\xc3'; sleep 600", {"timeout": 1}, "timeout", id="goes on"
        ),
        pytest.param("echo 1; kill -9 $$", {}, "error", id="ends its bash"),
        pytest.param(
            "echo lost >&2; head -c 9000000 /dev/zero | tr '\\0' x",
            {"max_output_length": 0},
            "ok",
            id="a flood",
        ),
        pytest.param("pwd", {"exec_dir": "/none"}, "error", id="is refused"),
        pytest.param(":", {"env": {"a b": ""}}, "error", id="is no command"),
    ],
)
def test_what_is_heard_is_what_the_answer_has(
    shared: Emulator, command: str, fields: dict[str, Any], status: str
) -> None:
    """Each piece once; where a flood took the first of it, that is cleared and told anew."""
    with listening(shared, "commands-same") as events:
        answer = exec_bash(shared, command, "commands-same", **fields)
        *heard, end = to_the_end(events)

    data = answer["data"] or {"stdout": "", "stderr": ""}
    assert (finished(status), answer["success"]) == (end, answer["data"] is not None)
    assert bool(data["stdout"]) == answer["success"] or status == "timeout"  # of a slow machine
    assert {name: data[name] for name in ("stdout", "stderr")} == as_answered(heard)


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        ("seq 2000; seq 3000 >&2; (exit 3)", {"max_output_length": 1000}),
        ("pwd", {"exec_dir": "/none"}),
        (":", {"env": {"a b": ""}}),
    ],
)
def test_the_answer_is_what_it_is_if_nobody_listens(
    shared: Emulator, command: str, fields: dict[str, Any]
) -> None:
    """But for ids, and for where the output lies in that of its bash."""
    with listening(shared, "commands-same"):
        heard = exec_bash(shared, command, "commands-same", **fields)
    alone = exec_bash(shared, command, "commands-same", **fields)

    for answer in (heard, alone):
        for name in ("command_id", "offset", "stderr_offset"):
            (answer["data"] or {}).pop(name, None)
    assert heard == alone


@pytest.mark.slow
def test_a_command_in_a_bash_of_its_own_is_heard() -> None:
    """U-EXECBASH-STATE."""
    fresh = Emulator(unknowns={"U-EXECBASH-STATE": "fresh"}, pool_size=0)
    with fresh as double, listening(double, "s1") as events:
        exec_bash(double, "echo fresh")
        assert [STARTED, put_out("fresh\n"), finished("ok")] == list(to_the_end(events))
