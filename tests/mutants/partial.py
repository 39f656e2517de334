"""Mutants that lose a part: the end of a stream, the error behind large outputs, the last byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from doublecheck.client._sync.platform import Platform
from tests.mutants import Witnessed, agents, application, protocols, sandbox, wire, witnesses
from tests.mutants.application import strings
from tests.mutants.changes import at, cut, drop, put, texts, where
from tests.mutants.wire import DROP, Answer, Change, Request
from tests.mutants.witnesses import numbered, require

MUCH = 100_000
MUCH_OF_A_COMMAND = 10_000  # a platform may cut more than this


# ---- changes


def without_failure_after(size: int) -> list[Change]:
    """Drop the failure of a stream after this many bytes."""

    def event(raw: bytes, request: Request) -> list[bytes]:
        before = request.state.get("size", 0)
        request.state["size"] = before + len(raw)
        return [] if application.is_failure(raw) and before > size else [raw]

    return [Change(wire.routed(application.INVOKE), event=event)]


def without_last(size: int) -> Callable[[Any], Any]:
    """Lose the last character or byte of anything longer than this."""
    return lambda value: value[:-1] if len(value) > size else value


def with_large_output(data: Any) -> bool:
    """Return whether an execution printed much."""
    return len("".join(output["text"] or "" for output in data["outputs"])) > MUCH


def error_after_large_output() -> Change:
    """Report an error as a success, without the error, if much was printed before it."""

    def succeeded(value: Any) -> Any:
        quiet = at("data.outputs", sandbox.without("error"))(value)
        return sandbox.succeeds(quiet)

    return sandbox.inner(where(lambda value: with_large_output(value["data"]), succeeded))


def first_events(count: int) -> Change:
    """End a stream after this many events."""

    def change(state: dict[str, Any], event: Any) -> Any:
        return event if len(state["seen"]) < count else DROP

    return agents.stream_events(change)


def ends_of_failed_tasks(document: Any, _request: Request) -> Any:
    """Drop the event with which a task fails."""
    result = document["result"]
    return DROP if protocols.failed(result.get("statusUpdate", result)) else document


def long_lines(text: str) -> str:
    """Cut the lines of a log."""
    return "\n".join(line[:4096] for line in text.split("\n"))


def cut_strings(size: int) -> Callable[[Answer, Request], None]:
    """Cut the texts of answers."""

    def change(answer: Answer, _request: Request) -> None:
        if answer.status == 200 and isinstance(answer.json, str):
            answer.set(200, answer.json[:size])

    return change


# ---- witnesses


def long_stream(count: int, name: str = "") -> Callable[[Platform], None]:
    """Read a stream of many strings."""

    def witness(platform: Platform) -> None:
        chunks = numbered(count)
        if name:
            with witnesses.hosted(platform, name) as runtime:
                require(chunks, witnesses.strings(runtime, chunks))
        else:
            require(chunks, witnesses.strings(platform, chunks))

    return witness


def failure_after_large_strings(platform: Platform) -> None:
    """Read a stream that fails after large strings."""
    chunks = ["x" * 10_000] * 12
    *before, last = witnesses.strings(platform, chunks, do="fail_late")
    require(chunks, before)
    assert "error" in json.loads(last)


def streamed_events(platform: Platform) -> None:
    """Stream a turn of many events."""
    texts = numbered(60)
    session = witnesses.session_of(platform)
    require(texts, witnesses.stream(platform, session, "events", texts=texts))


def listed_events(platform: Platform) -> None:
    """Run a turn of many events."""
    session, texts = witnesses.session_of(platform), numbered(60)
    events = witnesses.run(platform, session, "events", texts=texts)
    require(texts, [event.text for event in events])


def stored_text(platform: Platform) -> None:
    """Read a long text in a history."""
    session, text = witnesses.session_of(platform), "x" * 2 * MUCH
    witnesses.said(platform, session, text)
    require([text, text], witnesses.history(platform, session))


def answer_of_a_tool(platform: Platform) -> None:
    """Read the long answer of a tool."""
    session, response = witnesses.session_of(platform), {"text": "x" * 2 * MUCH}
    events = witnesses.run(platform, session, "call", args={}, response=response, reply="done")
    answers = [answer["response"] for event in events for answer in event.function_responses]
    require([response], answers)


def long_result(platform: Platform) -> None:
    """Read the long text of a tool."""
    with platform.mcp() as client:
        text = "x" * 2 * MUCH
        require(f"{text}!", client.call("join", first=text).text)


def long_answer_of_a_backend(platform: Platform) -> None:
    """Read the long answer of a backend through its service."""
    with witnesses.things(platform) as (client, _):
        text = "x" * 2 * MUCH
        result = client.call("addThing", body={"text": text})
        assert text in witnesses.fulfilled(result).text


def failed_task(platform: Platform) -> None:
    """Read the results of a task that fails."""
    answer = witnesses.order(platform, "fail", ["one", "two"])
    require(["failed", ["one", "two"]], [answer.state, [*answer.texts[-2:]]])


def stored_failed_task(platform: Platform) -> None:
    """Read the stored results of a task that fails."""
    answer = witnesses.order(platform, "fail", ["one", "two"])
    task = platform.a2a().task(str(answer.task_id))
    require(["failed", ["one", "two"]], [task.state, [*task.texts[-2:]]])


def streamed_failure(platform: Platform) -> None:
    """Stream a task that fails after a result."""
    events = platform.a2a().stream(json.dumps({"do": "fail", "texts": ["one"]}))
    states = [event.state for event in events]
    assert "failed" in states, states


def many_results(platform: Platform) -> None:
    """Stream a task with many results."""
    require(numbered(30), witnesses.results(platform, "say", numbered(30)))


def error_after_output(platform: Platform) -> None:
    """Run code that prints much and fails."""
    result = witnesses.box_of(platform).run(f"print('x' * {2 * MUCH})\n1 / 0")
    assert result.error is not None
    assert result.status != "ok"


def long_code(platform: Platform) -> None:
    """Read the long code in its result."""
    code = f"text = '{'x' * MUCH}'"
    require(code, witnesses.box_of(platform).run(code).code)


def large_file(platform: Platform) -> None:
    """Upload a large file and download it."""
    box, content = witnesses.box_of(platform), b"0123456789" * 150_000
    box.upload("/tmp/large", content)
    assert content == box.download("/tmp/large")


def large_file_of_code(platform: Platform) -> None:
    """Download a large file that code wrote."""
    box = witnesses.box_of(platform)
    box.run("open('/tmp/large', 'w').write('x' * 300_000)", check=True)
    assert b"x" * 300_000 == box.download("/tmp/large")


def output_of_a_command(platform: Platform) -> None:
    """Read the large output of a command."""
    result = witnesses.box_of(platform).exec_bash("printf '%020000d' 7")
    require([20_000, "7"], [len(result.stdout), result.stdout[-1:]])


def exit_code_after_output(platform: Platform) -> None:
    """Read the exit code of a command that prints much."""
    result = witnesses.box_of(platform).exec_bash("printf '%020000d' 7; exit 3")
    require(3, result.exit_code)


def long_string(platform: Platform) -> None:
    """Return a long string."""
    text = "x" * 2 * MUCH
    require(text, platform.invoke(text, do="say"))


def long_line(platform: Platform) -> None:
    """Read a long printed line in the logs of a runtime."""
    line = f"{witnesses.new_id()} {'x' * 6000} end"
    with witnesses.running(platform) as runtimes:
        runtimes.at(witnesses.SIMPLE).invoke(line, do="print")
        witnesses.wait_until(lambda: line[:32] in runtimes.logs(witnesses.SIMPLE))
        witnesses.wait_until(lambda: line in runtimes.logs(witnesses.SIMPLE))


TABLE: dict[str, dict[str, Any]] = {
    "INV-04": {
        "cut_strings_at_100000": Witnessed(
            wire.in_place(application.INVOKE, cut_strings(MUCH)), long_string
        )
    },
    "INV-05": {
        "end_a_stream_silently_after_50_strings": Witnessed(
            strings(lambda text, before: text if len(before) < 50 else []), long_stream(60)
        )
    },
    "INV-06": {
        "lose_the_failure_after_100_kb": Witnessed(
            without_failure_after(MUCH), failure_after_large_strings
        )
    },
    "HST-04": {
        "cut_lines_of_logs_at_4_kib": Witnessed(application.logs(long_lines), long_line),
    },
    "HST-05": {
        "end_streams_of_runtimes_after_20_strings": Witnessed(
            wire.Change(
                wire.routed(application.HOSTED),
                event=strings(lambda text, before: text if len(before) < 20 else []).event,
            ),
            long_stream(30, witnesses.SIMPLE),
        )
    },
    "API-05": {
        "store_100000_characters_of_a_text": Witnessed(
            agents.history(agents.each_event(agents.text(cut(MUCH)))), stored_text
        )
    },
    "API-07": {"list_50_events": Witnessed(agents.of_run(lambda some: some[:50]), listed_events)},
    "API-08": {
        "end_a_stream_silently_after_50_events": Witnessed(first_events(50), streamed_events)
    },
    "API-11": {
        "cut_the_answers_of_tools_at_100000": Witnessed(
            agents.runs(at("content.parts.*.functionResponse.response", texts(cut(MUCH)))),
            answer_of_a_tool,
        )
    },
    "MCP-03": {
        "cut_results_at_100000": Witnessed(
            protocols.results(at("content.*.text", cut(MUCH)), route="POST /mcp"), long_result
        )
    },
    "SVC-02": {
        "cut_results_at_100000": Witnessed(
            protocols.results(texts(cut(MUCH)), route=protocols.SERVICE), long_answer_of_a_backend
        )
    },
    "A2A-02": {
        "lose_the_results_of_a_failed_task": Witnessed(
            protocols.tasks(protocols.SEND, where(protocols.failed, drop("artifacts"))), failed_task
        )
    },
    "A2A-03": {
        "end_silently_where_a_task_fails": Witnessed(
            protocols.streamed(ends_of_failed_tasks), streamed_failure
        ),
        "end_silently_after_20_results": Witnessed(
            protocols.numbered(lambda number: number <= 20), many_results
        ),
    },
    "A2A-04": {
        "store_no_results_of_a_failed_task": Witnessed(
            protocols.tasks(protocols.GET_TASK, where(protocols.failed, drop("artifacts"))),
            stored_failed_task,
        )
    },
    "CTL-02": {
        "cut_the_code_at_64_kib": Witnessed(sandbox.data(at("code", cut(65536))), long_code)
    },
    "SBX-06": {
        "lose_the_error_after_100_kb_of_output": Witnessed(
            error_after_large_output(), error_after_output
        )
    },
    "SBX-09": {
        "lose_the_last_byte_of_large_outputs": Witnessed(
            sandbox.terminal(at("stdout", without_last(MUCH_OF_A_COMMAND))), output_of_a_command
        ),
        "tell_success_after_large_outputs": Witnessed(
            sandbox.terminal(
                where(lambda value: len(value["stdout"]) > MUCH_OF_A_COMMAND, put(exit_code=0))
            ),
            exit_code_after_output,
        ),
    },
    "SBX-10": {
        "lose_the_last_byte_of_uploads_over_1_mib": Witnessed(
            sandbox.uploaded(without_last(2**20)), large_file
        ),
        "lose_the_last_byte_of_downloads_over_256_kib": Witnessed(
            sandbox.downloaded(without_last(2**18)), large_file_of_code
        ),
    },
}
