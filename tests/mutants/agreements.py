"""Mutants of MCP and A2A after errors and cancellations, and of messages that are results."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from doublecheck.client._sync.platform import Platform
from doublecheck.errors import RefusedError
from doublecheck.wire import mcp
from doublecheck.wire.mcp import McpServer
from tests.mutants import Witnessed, protocols, wire, witnesses
from tests.mutants.changes import always, at
from tests.mutants.repetition import after, failing_call
from tests.mutants.wire import DROP, Answer, Change, Request
from tests.mutants.witnesses import require

CANCEL = ("CancelTask", "tasks/cancel")
ENDPOINT = "POST /mcp"

# ---- MCP


def refused_ping(document: Any) -> Any:
    """Answer with an error."""
    error = {"code": -32603, "message": "Internal error"}
    return {"jsonrpc": "2.0", "id": document.get("id"), "error": error}


def notified(answer: Answer, request: Request) -> None:
    """Answer a notification with a result."""
    if request.json is not None and "id" not in request.json and answer.status < 300:
        answer.set(200, {"jsonrpc": "2.0", "id": None, "result": {}})


def positive_id(document: Any) -> Any:
    """Answer a request with a positive id."""
    id_ = document.get("id")
    return {**document, "id": abs(id_)} if isinstance(id_, int) else document


def short_id(document: Any) -> Any:
    """Answer a request with 64 characters of its id."""
    id_ = document.get("id")
    return {**document, "id": id_[:64]} if isinstance(id_, str) else document


def failing_protocol(note: Callable[[Request], None]) -> Change:
    """Take an error of JSON-RPC as the cause."""

    def message(document: Any, request: Request) -> Any:
        if isinstance(document, dict) and "error" in document:
            note(request)
        return document

    return wire.messages("*", message, "POST /mcp*")


def without_text_after_an_error() -> list[Change]:
    """Return an empty text from the call after one of an unknown method."""
    return after(failing_protocol, protocols.results(at("content.*.text", always(""))))


# ---- A2A


def context_of(request: Request) -> Any:
    """Return the context of a message."""
    return request.json["params"].get("message", {}).get("contextId")


def another_context() -> list[Change]:
    """Begin a new context with the message after one that failed."""
    failed: set[Any] = set()

    def note(task: Any) -> Any:
        if protocols.failed(task):
            failed.add(task.get("contextId"))
        return task

    def change(message: Any) -> Any:
        if message.get("contextId") not in failed:
            return message
        failed.discard(message["contextId"])
        return {name: value for name, value in message.items() if name != "contextId"}

    return [*protocols.message(change), *protocols.tasks(protocols.SEND, note)]


def forgotten_context() -> list[Change]:
    """Forget the tasks of a context after one of them was to be cancelled."""
    contexts: dict[str, str] = {}
    gone: set[str] = set()

    def note(task: Any) -> Any:
        contexts[task["id"]] = task.get("contextId", "")
        return task

    def cancel(request: Request) -> None:
        gone.add(contexts.get(request.json["params"]["id"], ""))

    def read(document: Any, request: Request) -> Any:
        is_gone = contexts.get(request.json["params"]["id"]) in gone
        return protocols.missing(document) if is_gone else document

    return [
        *protocols.tasks(protocols.SEND, note),
        *(Change(wire.rpc(method), request=cancel) for method in CANCEL),
        *protocols.documents(protocols.GET_TASK, read),
    ]


def message_of(result: Any) -> bool:
    """Return whether a result is a message."""
    return protocols.task_of(result) is None


def empty_messages(result: Any) -> Any:
    """Empty a result that is a message."""
    if not message_of(result):
        return result
    path = "message.parts" if "message" in result else "parts"
    return at(path, always([]))(result)


def without_messages(document: Any, _request: Request) -> Any:
    """Drop an event that is a message."""
    return DROP if message_of(document["result"]) else document


# ---- witnesses


def reference(platform: Platform) -> McpServer:
    """Return the reference tools."""
    return McpServer.at(platform.target, mcp.PATH, None, None)


def list_after_a_failed_call(platform: Platform) -> None:
    """List the tools after a call that fails."""
    with platform.mcp() as client:
        names = sorted(tool.name for tool in client.tools())
        assert client.call("add", a="many", b=1).is_error
        require(names, sorted(tool.name for tool in client.tools()))


def ping_after_a_failed_call(platform: Platform) -> None:
    """Ping after a call that fails."""
    with platform.mcp() as client:
        assert client.call("add", a="many", b=1).is_error
        client.ask("ping")


def call_after_an_unknown_method(platform: Platform) -> None:
    """Call a tool after an unknown method."""
    with platform.mcp() as client:
        try:
            client.ask("witness/nothing")
        except RefusedError:
            require("a!", client.call("join", first="a").text)


def notification(platform: Platform) -> None:
    """Send a notification, which has no answer."""
    server = reference(platform)
    opening = mcp.initialize(server)
    session = opening.read(platform.send(opening.request))
    answer = platform.send(mcp.initialized(server, session).request)
    platform.send(mcp.end(server, session).request)
    require([202, ""], [answer.status_code, answer.text])


def answers_with(*ids: Any) -> Callable[[Platform], None]:
    """Send requests with these ids."""

    def witness(platform: Platform) -> None:
        server = reference(platform)
        opening = mcp.initialize(server)
        session = opening.read(platform.send(opening.request))
        for id_ in ids:
            message = {"jsonrpc": "2.0", "id": id_, "method": "ping", "params": {}}
            answer = platform.send(mcp.request(server, session, message))
            require([id_], [document.get("id") for document in mcp.messages(answer)])
        platform.send(mcp.end(server, session).request)

    return witness


def context_after_a_failure(platform: Platform) -> None:
    """Continue a context after a task of it has failed."""
    failed = witnesses.order(platform, "fail", ["one"])
    answer = witnesses.order(platform, "say", ["two"], context_id=failed.context_id)
    require(failed.context_id, answer.context_id)


def tasks_after_a_cancellation(platform: Platform) -> None:
    """Read a task after another one of its context was to be cancelled."""
    first = witnesses.order(platform, "say", ["one"])
    second = witnesses.order(platform, "say", ["two"], context_id=first.context_id)
    try:
        platform.a2a().cancel(str(second.task_id))
    except RefusedError:
        require(["one"], [*platform.a2a().task(str(first.task_id)).texts])


def message_as_a_result(platform: Platform) -> None:
    """Read a result that is a message."""
    order = json.dumps({"do": "release", "name": "nobody"})
    require(["release"], [*platform.a2a().send(order).texts])


def streamed_message(platform: Platform) -> None:
    """Stream a result that is a message."""
    order = json.dumps({"do": "release", "name": "nobody"})
    events = platform.a2a().stream(order)
    require(["release"], [text for event in events for text in event.texts])


TABLE: dict[str, dict[str, Any]] = {
    "MCP-01": {
        "refuse_the_ping_after_a_failed_call": Witnessed(
            after(failing_call, wire.messages("ping", refused_ping, ENDPOINT)),
            ping_after_a_failed_call,
        ),
        "answer_notifications": Witnessed(wire.in_place("POST /mcp*", notified), notification),
        "answer_negative_ids_with_positive_ones": Witnessed(
            wire.messages("*", positive_id, "POST /mcp*"), answers_with(-7)
        ),
        "answer_long_ids_with_64_characters": Witnessed(
            wire.messages("*", short_id, "POST /mcp*"), answers_with("ab" * 50)
        ),
        "return_no_text_after_an_unknown_method": Witnessed(
            without_text_after_an_error(), call_after_an_unknown_method
        ),
    },
    "MCP-03": {
        "list_no_tools_after_a_failed_call": Witnessed(
            after(failing_call, protocols.tools(always([]), ENDPOINT)), list_after_a_failed_call
        )
    },
    "A2A-02": {
        "begin_a_new_context_after_a_failure": Witnessed(
            another_context(), context_after_a_failure
        ),
        "lose_the_text_of_a_message_as_a_result": Witnessed(
            [wire.calls(method, empty_messages) for method in protocols.SEND], message_as_a_result
        ),
    },
    "A2A-03": {
        "lose_a_message_as_a_result": Witnessed(
            protocols.streamed(without_messages), streamed_message
        )
    },
    "A2A-04": {
        "forget_the_tasks_of_a_context_after_a_cancellation": Witnessed(
            forgotten_context(), tasks_after_a_cancellation
        )
    },
}
