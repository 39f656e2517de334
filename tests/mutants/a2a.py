"""Mutants of A2A applications."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.mutants import Mutant, lossy, wire

CARD = "GET /.well-known/agent-card.json"
BUILT = "An agent card is built from an agent and a URL (2.9)"
PASSED = "is passed when the application runs (2.9)"
EXECUTE = "override execute(context, event_queue) for custom logic (4.6)"
INTERMEDIATE = "A2A executors send intermediate results through the event queue (6.4)"

SEND = ("SendMessage", "message/send")
STREAM = ("SendStreamingMessage", "message/stream")

Change = Callable[[pytest.MonkeyPatch], None]
Task = dict[str, Any]


def every(changes: Iterable[wire.Change]) -> Change:
    every = tuple(changes)
    return lambda patch: wire.install(patch, *every)


def calls(methods: Iterable[str], change: Callable[..., Any]) -> Change:
    """Change the results of methods, whichever version of the protocol is spoken."""
    return every(wire.calls(method, change) for method in methods)


def documents(methods: tuple[str, ...], change: Callable[..., Any]) -> wire.Change:
    """Change whole JSON-RPC answers to methods, also errors."""

    def changed(document: Any, request: wire.Request) -> Any:
        asked = request.json
        chosen = isinstance(asked, dict) and asked.get("method") in methods
        return change(document, request) if chosen else document

    return wire.answers("POST /", changed)


# ---- the card


def _card(**fields: Any) -> wire.Change:
    return wire.answers(CARD, lambda card: {**card, **fields})


def _card_without(name: str) -> wire.Change:
    return wire.answers(CARD, lossy.without(name))


def _at(place: Callable[[str], str]) -> wire.Change:
    """Change the URLs of the card."""

    def changed(card: Any) -> Any:
        interfaces = [{**one, "url": place(one["url"])} for one in card["supportedInterfaces"]]
        return {**card, "supportedInterfaces": interfaces}

    return wire.answers(CARD, changed)


def _card_as_html(answer: wire.Answer, _request: wire.Request) -> None:
    answer.headers["content-type"] = "text/html"
    answer.body = b"<pre>" + answer.body + b"</pre>"


def _serve_the_card_once(patch: pytest.MonkeyPatch) -> None:
    """Serve the card only to the first who asks."""
    asked: list[str] = []

    def refuse(answer: wire.Answer, request: wire.Request) -> None:
        if asked:
            answer.status, answer.body = 500, b'{"error": "the card has been served"}'
        asked.append(request.path)

    wire.install(patch, wire.answered(CARD, refuse))


CARDS = (
    Mutant("serve_no_card", "A2A-01", BUILT, wire.statuses(CARD, 404, {"detail": "Not Found"})),
    Mutant("serve_the_card_once", "A2A-01", PASSED, _serve_the_card_once),
    Mutant("serve_the_card_as_html", "A2A-01", BUILT, wire.answered(CARD, _card_as_html)),
    Mutant("wrap_the_card", "A2A-01", BUILT, wire.answers(CARD, lambda card: {"card": card})),
    Mutant("leave_the_name_out_of_the_card", "A2A-01", BUILT, _card_without("name")),
    Mutant("name_another_agent", "A2A-01", BUILT, _card(name="agent")),
    Mutant("describe_no_agent", "A2A-01", BUILT, _card(description="")),
    Mutant("show_no_skills", "A2A-01", BUILT, _card(skills=[])),
    Mutant("show_no_url", "A2A-01", BUILT, _card(supportedInterfaces=[], url="")),
    Mutant(
        "show_the_url_of_another_host",
        "A2A-01",
        BUILT,
        _at(lambda _: "https://agents.example.com"),
    ),
    Mutant(
        "show_the_address_it_listens_at",
        "A2A-01",
        BUILT,
        _at(lambda _: "http://0.0.0.0:8000"),
    ),
    Mutant("show_a_url_where_nothing_is", "A2A-01", BUILT, _at(lambda url: f"{url}/a2a/v1/rpc")),
    Mutant("show_a_relative_url", "A2A-01", BUILT, _at(lambda _: "/")),
)


# ---- messages and their results


def task_of(result: Any) -> Task:
    """Return the task in a result, of either version; {} if it is a message."""
    task: Task = result.get("task", {} if "message" in result else result)
    return task if task.get("kind", "task") == "task" else {}


def _sent(change: Callable[[Task], Any]) -> Change:
    """Change the tasks that are the results of messages, in place."""

    def changed(result: Any) -> Any:
        task = task_of(result)
        if task:
            change(task)
        return result

    return calls(SEND, changed)


def _asked(change: Callable[[list[Any]], list[Any]]) -> Change:
    """Change the parts of messages, streamed or not."""

    def changed(params: Any) -> Any:
        message = params["message"]
        return {**params, "message": {**message, "parts": change(message["parts"])}}

    return every(wire.called_with(method, changed) for method in (*SEND, *STREAM))


def _asked_text(change: lossy.Change) -> Change:
    return _asked(lambda parts: [{**one, "text": change(one.get("text", ""))} for one in parts])


def change_texts(carrier: Any, change: lossy.Change) -> None:
    for artifact in carrier.get("artifacts", []):
        artifact["parts"] = lossy.in_texts(artifact["parts"], change)


def _result_text(change: lossy.Change) -> Change:
    return _sent(lambda task: change_texts(task, change))


def in_state(state: str) -> Callable[[Task], None]:
    def change(task: Task) -> None:
        known = task["status"]["state"]
        modern = known.startswith("TASK_STATE_")
        task["status"]["state"] = f"TASK_STATE_{state.upper()}" if modern else state

    return change


def _fail_as_completed(task: Task) -> None:
    if task["status"]["state"] in ("TASK_STATE_FAILED", "failed"):
        in_state("completed")(task)


def _echo(result: Any, request: wire.Request) -> Any:
    asked = request.json["params"]["message"]["parts"]
    for artifact in task_of(result).get("artifacts", []):
        artifact["parts"] = asked
    return result


def _twice(task: Task) -> None:
    task["artifacts"] = [*task.get("artifacts", []), *task.get("artifacts", [])]


def _lose_message_parts(result: Any) -> Any:
    if "message" in result:
        result["message"]["parts"] = []
    return result


def _repeat_the_first_artifacts(patch: pytest.MonkeyPatch) -> None:
    """Answer every message with the artifacts of the first."""
    first: list[Any] = []

    def changed(result: Any) -> Any:
        task = task_of(result)
        if task.get("artifacts"):
            first.append(task["artifacts"])
            task["artifacts"] = first[0]
        return result

    calls(SEND, changed)(patch)


def _refuse_in_a_conversation(patch: pytest.MonkeyPatch) -> None:
    """Forget what belongs to a context: a second message in it begins another."""

    def changed(params: Any) -> Any:
        message = lossy.without("contextId")(params["message"])
        return {**params, "message": message}

    every(wire.called_with(method, changed) for method in SEND)(patch)


RESULTS = (
    Mutant("give_the_executor_256_characters", "A2A-02", EXECUTE, _asked_text(lossy.cut(256))),
    Mutant("give_the_executor_ascii", "A2A-02", EXECUTE, _asked_text(lossy.to_ascii)),
    Mutant("give_the_executor_lower_case", "A2A-02", EXECUTE, _asked_text(str.lower)),
    Mutant("give_the_executor_the_first_part", "A2A-02", EXECUTE, _asked(lambda parts: parts[:1])),
    Mutant("give_the_executor_the_last_part", "A2A-02", EXECUTE, _asked(lambda parts: parts[-1:])),
    Mutant("cut_results_after_2000_characters", "A2A-02", EXECUTE, _result_text(lossy.cut(2000))),
    Mutant("lose_what_is_not_ascii_in_results", "A2A-02", EXECUTE, _result_text(lossy.to_ascii)),
    Mutant(
        "return_no_artifact", "A2A-02", EXECUTE, _sent(lambda task: task.pop("artifacts", None))
    ),
    Mutant("return_each_artifact_twice", "A2A-02", EXECUTE, _sent(_twice)),
    Mutant("return_what_was_asked", "A2A-02", EXECUTE, calls(SEND, _echo)),
    Mutant("return_the_first_result_again", "A2A-02", EXECUTE, _repeat_the_first_artifacts),
    Mutant("tell_success_as_failed", "A2A-02", EXECUTE, _sent(in_state("failed"))),
    Mutant("leave_tasks_working", "A2A-02", EXECUTE, _sent(in_state("working"))),
    Mutant("tell_failed_executions_as_completed", "A2A-02", EXECUTE, _sent(_fail_as_completed)),
    Mutant(
        "name_another_task",
        "A2A-02",
        EXECUTE,
        _sent(lambda task: task.update(id=uuid.uuid4().hex)),
    ),
    Mutant(
        "answer_another_request",
        "A2A-02",
        EXECUTE,
        documents(SEND, lambda document, _: {**document, "id": 4711}),
    ),
    Mutant("return_messages_without_text", "A2A-02", EXECUTE, calls(SEND, _lose_message_parts)),
    Mutant("forget_the_context_of_a_message", "A2A-02", EXECUTE, _refuse_in_a_conversation),
)


# ---- intermediate results


def streamed(change: Callable[..., Any]) -> wire.Change:
    """Change events of streams of messages; the function may return a list or DROP."""

    def changed(document: Any, request: wire.Request) -> Any:
        asked = request.json
        chosen = isinstance(asked, dict) and asked.get("method") in STREAM
        return change(document, request) if chosen and "result" in document else document

    return wire.events("POST /", changed)


def _artifact(document: Any) -> dict[str, Any] | None:
    """Return the event of an artifact, of either version, or None."""
    result = document["result"]
    found: dict[str, Any] | None = result.get("artifactUpdate")
    return result if found is None and "artifact" in result else found


def _ends(document: Any) -> bool:
    result = document["result"]
    update = result.get("statusUpdate", result)
    state = str(update.get("status", {}).get("state", "")).removeprefix("TASK_STATE_").lower()
    return "message" in result or state in ("completed", "failed")


def _artifacts(change: Callable[[dict[str, Any]], None]) -> wire.Change:
    """Change the events of artifacts in place."""

    def changed(document: Any, _request: wire.Request) -> Any:
        update = _artifact(document)
        if update is not None:
            change(update)
        return document

    return streamed(changed)


def _streamed_text(change: lossy.Change) -> wire.Change:
    def changed(update: dict[str, Any]) -> None:
        update["artifact"]["parts"] = lossy.in_texts(update["artifact"]["parts"], change)

    return _artifacts(changed)


def _keeping_some(keep: Callable[[int], bool]) -> Change:
    """Keep the artifacts of a stream whose numbers a function keeps, from 1."""

    def change(patch: pytest.MonkeyPatch) -> None:
        counts: dict[int, int] = {}

        def changed(document: Any, request: wire.Request) -> Any:
            if _artifact(document) is None:
                return document
            counts[id(request)] = counts.get(id(request), 0) + 1
            return document if keep(counts[id(request)]) else wire.DROP

        wire.install(patch, streamed(changed))

    return change


def _hold_back(patch: pytest.MonkeyPatch) -> None:
    """Send all artifacts at the end."""
    held: dict[int, list[Any]] = {}

    def changed(document: Any, request: wire.Request) -> Any:
        kept = held.setdefault(id(request), [])
        kept.append(document)
        return held.pop(id(request)) if _ends(document) else wire.DROP

    wire.install(patch, streamed(changed))


def _one_behind(patch: pytest.MonkeyPatch) -> None:
    """Send each event when the next one comes."""
    held: dict[int, Any] = {}

    def changed(document: Any, request: wire.Request) -> Any:
        before = [held[id(request)]] if id(request) in held else []
        held[id(request)] = document
        return [*before, document] if _ends(document) else before

    wire.install(patch, streamed(changed))


def _all_so_far(patch: pytest.MonkeyPatch) -> None:
    """Send with each artifact the texts of those before."""
    texts: dict[int, list[Any]] = {}

    def changed(document: Any, request: wire.Request) -> Any:
        update = _artifact(document)
        if update is not None:
            parts = texts.setdefault(id(request), [])
            parts.extend(update["artifact"]["parts"])
            update["artifact"]["parts"] = list(parts)
        return document

    wire.install(patch, streamed(changed))


def _first_artifact_again(patch: pytest.MonkeyPatch) -> None:
    """Send the first artifact of a stream in place of each."""
    first: dict[int, Any] = {}

    def changed(document: Any, request: wire.Request) -> Any:
        update = _artifact(document)
        if update is not None:
            update["artifact"] = first.setdefault(id(request), update["artifact"])
        return document

    wire.install(patch, streamed(changed))


def _twice_in_a_stream(document: Any, _request: wire.Request) -> Any:
    return document if _artifact(document) is None else [document, document]


def _without_the_end(document: Any, _request: wire.Request) -> Any:
    return wire.DROP if _ends(document) else document


def _end_as_failed(document: Any, _request: wire.Request) -> Any:
    if _ends(document) and "statusUpdate" in document["result"]:
        in_state("failed")(document["result"]["statusUpdate"])
    return document


INCREMENTS = (
    Mutant("hold_results_back_until_the_end", "A2A-03", INTERMEDIATE, _hold_back),
    Mutant("stay_one_result_behind", "A2A-03", INTERMEDIATE, _one_behind),
    Mutant("lose_the_first_result", "A2A-03", INTERMEDIATE, _keeping_some(lambda at: at > 1)),
    Mutant("send_only_the_first_result", "A2A-03", INTERMEDIATE, _keeping_some(lambda at: at == 1)),
    Mutant(
        "lose_what_follows_the_third_result",
        "A2A-03",
        INTERMEDIATE,
        _keeping_some(lambda at: at <= 3),
    ),
    Mutant("send_the_first_result_for_each", "A2A-03", INTERMEDIATE, _first_artifact_again),
    Mutant("send_all_results_so_far", "A2A-03", INTERMEDIATE, _all_so_far),
    Mutant("send_results_twice", "A2A-03", INTERMEDIATE, streamed(_twice_in_a_stream)),
    Mutant(
        "send_results_without_their_texts", "A2A-03", INTERMEDIATE, _streamed_text(lossy.cut(0))
    ),
    Mutant(
        "cut_streamed_results_after_32_characters",
        "A2A-03",
        INTERMEDIATE,
        _streamed_text(lossy.cut(32)),
    ),
    Mutant(
        "lose_what_is_not_ascii_in_streamed_results",
        "A2A-03",
        INTERMEDIATE,
        _streamed_text(lossy.to_ascii),
    ),
    Mutant(
        "send_results_of_another_task",
        "A2A-03",
        INTERMEDIATE,
        _artifacts(lambda update: update.update(taskId=uuid.uuid4().hex)),
    ),
    Mutant("send_no_end_of_a_stream", "A2A-03", INTERMEDIATE, streamed(_without_the_end)),
    Mutant("end_streams_as_failed", "A2A-03", INTERMEDIATE, streamed(_end_as_failed)),
)


MUTANTS: tuple[Mutant, ...] = (*CARDS, *RESULTS, *INCREMENTS)
