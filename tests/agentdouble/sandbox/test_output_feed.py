from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from agentdouble import Emulator
from agentdouble.core.invoke_tool import RUN_HEADER
from agentdouble.sandbox.instance_key import InstanceKey
from tests.agentdouble.calling import (
    Begun,
    act_on_session,
    body_of,
    data_plane,
    home_of,
    http,
    run,
    signed,
    text,
)
from tests.agentdouble.sandbox.hearing import Heard, listening, to_the_end

KEY = InstanceKey("t-1", "s")


def printed(text: str, name: str = "stdout") -> Heard:
    content = {"name": name, "text": text}
    return "output", {"run": None, "msg_type": "stream", "content": content}


def started(count: int) -> Heard:
    return "started", {"run": None, "language": "python3", "execution_count": count}


def finished(status: str = "ok", *, context_lost: bool = False) -> Heard:
    return "finished", {"run": None, "status": status, "context_lost": context_lost}


def test_listeners_receive_executions(shared: Emulator) -> None:
    """They get one session's events from start to end, even of a new session."""
    with listening(shared, "feed-all") as events:
        run(shared, "1", "feed-other")
        run(shared, "print('one')", "feed-all")
        first = list(to_the_end(events))
        run(shared, "print('two')", "feed-all")
        second = list(to_the_end(events))

    assert [started(1), printed("one\n"), finished()] == first
    assert [started(2), printed("two\n"), finished()] == second


def test_outputs_are_sent_while_code_runs(shared: Emulator) -> None:
    """The first one arrives before the code may continue."""
    with listening(shared, "feed-live") as events:
        code = Begun(shared, "feed-live", "print('after')")
        list(to_the_end(events))  # of what makes the pipes
        assert started(2) == next(events)
        code.go()
        assert [printed("after\n"), finished()] == list(to_the_end(events))
        code.future.result()


def test_an_execution_carries_its_caller_s_run_name(shared: Emulator) -> None:
    """A client can tell its own executions from others."""
    with listening(shared, "feed-named") as events:
        request = signed(shared, body_of(shared, "1", "feed-named"))
        headers = {**request.headers, RUN_HEADER: "mine"}
        http.request("POST", request.url, headers=headers, content=request.body)
        frames = list(to_the_end(events))

    assert ["started", "output", "finished"] == [kind for kind, _ in frames]
    assert {"mine"} == {data["run"] for _, data in frames}


def test_data_plane_executions_are_not_published(shared: Emulator) -> None:
    """Only InvokeTool's are."""
    run(shared, "1", "feed-plane")
    with listening(shared, "feed-plane") as events:
        data_plane(shared, "feed-plane").data("/v1/jupyter/execute", code="print('plane')")
        run(shared, "print('tool')", "feed-plane")
        frames = list(to_the_end(events))

    assert printed("tool\n") == frames[1]


def test_output_cut_from_the_answer_is_not_published(shared: Emulator) -> None:
    """Listeners get the same cut output and mark."""
    with listening(shared, "feed-flood") as events:
        inner = run(shared, "for _ in range(50): print('x' * 100_000)", "feed-flood")
        contents = [d["content"] for kind, d in to_the_end(events) if kind == "output"]

    flood, mark = inner["data"]["outputs"]
    assert flood["text"] == "".join(content["text"] for content in contents[:-1])
    assert {"name": "stderr", "text": mark["text"]} == contents[-1]


def test_a_dead_kernel_is_published(shared: Emulator) -> None:
    """Its error is the last output; the start event may be lost."""
    with listening(shared, "feed-dies") as events:
        run(shared, "import os; os._exit(3)", "feed-dies")
        *_, (kind, data), end = to_the_end(events)

    assert ("output", "error", "KernelDied") == (kind, data["msg_type"], data["content"]["ename"])
    assert finished("error", context_lost=True) == end


def test_stopping_the_double_ends_the_feed() -> None:
    """It ends at once, with a clean close."""
    double = Emulator().start()
    with listening(double, "s") as events:
        double.stop()
        assert [] == list(events)


@pytest.mark.parametrize("query", ["", "tool_id=t-1"])
def test_a_feed_without_a_session_is_refused(shared: Emulator, query: str) -> None:
    """The error names the missing field."""
    response = http.get(f"{shared.url}/_emulator/outputs?{query}")

    assert 400 == response.status_code
    assert "'user_session_id' is missing." == response.json()["error"]["message"]


# ---- without a double ----


def in_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a coroutine as a test."""

    @functools.wraps(test)
    def run_it() -> None:
        asyncio.run(test())

    return run_it


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_output_between_two_calls_is_in_the_log_and_in_the_feed(
    shared: Emulator, language: str
) -> None:
    """No result contains it: a thread or a timer prints it when its code has ended."""
    session = f"late-{language}"
    text(shared, "import os; os.mkfifo('go')", session)
    code = {
        "python": "import threading\ndef wait():\n    open('go').read()\n    print('tick')\n"
        "threading.Thread(target=wait).start()",
        "javascript": "const changes = Deno.watchFs('.')\n"
        "changes.next().then(() => console.log('tick'))\nundefined",
    }[language]
    with listening(shared, session) as events:
        session_id = run(shared, code, session, language=language)["data"]["session_id"]
        ran = list(to_the_end(events))
        home = home_of(shared, session)
        (home / ("go" if language == "python" else "new")).write_text("now")
        kind, data = next(events)

    assert "finished" == ran[-1][0]
    assert ("late", "stream", {"name": "stdout", "text": "tick\n"}) == (
        kind,
        data["msg_type"],
        data["content"],
    )
    log = act_on_session(shared, "GetSessionLogs", session_id)["Logs"]
    assert "after its end, in no result: stdout: tick" in log
    after = run(shared, "1", session, language=language)["data"]["outputs"]
    assert ["execute_result"] == [output["output_type"] for output in after]
