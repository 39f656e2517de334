"""Mutants of MCP servers (MCP), of services (SVC) and of A2A applications (A2A)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.mutants.changes import (
    OfValue,
    admitted,
    always,
    at,
    cut,
    drop_if,
    first,
    put,
    texts,
    where,
)
from tests.mutants.wire import (
    DROP,
    Change,
    Request,
    answers,
    called_with,
    calls,
    events,
    messages,
    refused,
    rpc,
    statuses,
)

ENDPOINT, SERVICE = "* /mcp*", "POST /mcp/{name}"
ASYNC, DICTS = ("join", "facts", "shout"), ("place", "facts", "describe")


# ---- tools


def name_of(request: Request) -> str:
    """Return the name of the tool that a request calls."""
    return str(request.json["params"]["name"])


def tools(change: Callable[[list[Any]], Any], route: str = "* *") -> Change:
    """Change the list of tools."""
    return calls("tools/list", at("tools", change), route)


def tool(name: str, change: OfValue) -> Change:
    """Change one listed tool, or all (``*``)."""
    return tools(at("*", where(lambda entry: name in ("*", entry["name"]), change)))


def arguments(change: OfValue, *names: str, route: str = "* *") -> Change:
    """Change the arguments of calls to these tools, or to all."""

    def changed(params: Any) -> Any:
        chosen = not names or params["name"] in names
        return {**params, "arguments": change(params.get("arguments", {}))} if chosen else params

    return called_with("tools/call", changed, route)


def results(change: OfValue, *names: str, route: str = "* *") -> Change:
    """Change the results of these tools, or of all."""

    def changed(result: Any, request: Request) -> Any:
        return change(result) if not names or name_of(request) in names else result

    return calls("tools/call", changed, route)


def by_tool(change: Callable[[], OfValue], route: str = "* *") -> Change:
    """Change results with a separate change for each tool."""
    changes: dict[str, OfValue] = {}

    def changed(result: Any, request: Request) -> Any:
        return changes.setdefault(request.path + name_of(request), change())(result)

    return calls("tools/call", changed, route)


def structured(change: OfValue) -> Change:
    """Change the structured content of tools that return a dict."""
    return results(at("structuredContent", where(bool, change)), *DICTS)


def schemas(change: Callable[[Any], Any], name: str = "*") -> Change:
    """Change the input schema of one tool, or of all."""
    return tool(name, at("inputSchema", change))


def prompt(required: list[str], **properties: Any) -> Change:
    """Replace the parameters of the agent."""
    schema = {"type": "object", "properties": properties, "required": required}
    return schemas(always(schema), "shout")


# ---- the protocol and its keys


def unknown_methods(document: Any) -> Any:
    """Answer unknown methods with a success."""
    missing = document.get("error", {}).get("code") == -32601
    return {"jsonrpc": "2.0", "id": document["id"], "result": {}} if missing else document


def bearer(request: Request) -> str:
    """Return the key of a request."""
    return request.header("authorization").removeprefix("Bearer ")


def keys(accepts: Callable[[str, str], Any]) -> Change:
    """Accept more keys; the function takes the sent key and the right one."""
    return admitted(
        ENDPOINT, lambda request, sent: accepts(bearer(request), sent.removeprefix("Bearer "))
    )


def unguarded(when: Callable[[Request], Any]) -> Change:
    """Answer some requests without the right key."""
    return admitted(ENDPOINT, lambda request, _sent: when(request))


# ---- A2A

CARD = "GET /.well-known/agent-card.json"
SEND, STREAM = ("SendMessage", "message/send"), ("SendStreamingMessage", "message/stream")
GET_TASK = ("GetTask", "tasks/get")


def task_of(result: Any) -> Any:
    """Return the task in a result of either version of A2A, or None."""
    if "message" in result or result.get("kind") == "message":
        return None
    return result.get("task", result)


def tasks(methods: tuple[str, ...], change: OfValue) -> list[Change]:
    """Change the tasks that methods return."""

    def changed(result: Any) -> Any:
        if task_of(result) is None:
            return result
        return at("task", change)(result) if "task" in result else change(result)

    return [calls(method, changed) for method in methods]


def state(name: str) -> OfValue:
    """Replace the state, in the form of the protocol's version."""
    return at(
        "status.state",
        lambda now: f"TASK_STATE_{name.upper()}" if now.startswith("TASK_") else name,
    )


def failed(task: Any) -> bool:
    """Return whether a task failed."""
    return str(task.get("status", {}).get("state")).lower().endswith("failed")


def message(change: OfValue) -> list[Change]:
    """Change messages to executors."""
    return [called_with(method, at("message", change)) for method in (*SEND, *STREAM)]


def documents(methods: tuple[str, ...], change: Callable[..., Any]) -> list[Change]:
    """Change whole JSON-RPC documents of methods."""
    return [messages(method, change) for method in methods]


def streamed(change: Callable[[Any, Request], Any]) -> list[Change]:
    """Change the events of streams; the function may return a list, or DROP."""

    def changed(document: Any, request: Request) -> Any:
        is_result = isinstance(document, dict) and "result" in document
        return change(document, request) if is_result else document

    return [Change(rpc(method), event=events("* *", changed).event) for method in STREAM]


def update_of(document: Any) -> Any:
    """Return the artifact update in either version of A2A, or None."""
    result = document["result"]
    return result.get("artifactUpdate", result if "artifact" in result else None)


def is_end(document: Any) -> bool:
    """Return whether an event ends a stream."""
    result = document["result"]
    state = str(result.get("statusUpdate", result).get("status", {}).get("state", ""))
    return "message" in result or state.lower().endswith(("completed", "failed"))


def updates(change: OfValue) -> list[Change]:
    """Change artifact updates."""

    def changed(document: Any, _request: Request) -> Any:
        if update_of(document) is None:
            return document
        path = "result.artifactUpdate" if "artifactUpdate" in document["result"] else "result"
        return at(path, change)(document)

    return streamed(changed)


def numbered(is_kept: Callable[[int], bool]) -> list[Change]:
    """Keep the artifacts of a stream whose number, from 1, is selected."""

    def changed(document: Any, request: Request) -> Any:
        if update_of(document) is None:
            return document
        request.state["number"] = request.state.get("number", 0) + 1
        return document if is_kept(request.state["number"]) else DROP

    return streamed(changed)


def hold_back(document: Any, request: Request) -> Any:
    """Hold all events back until the end."""
    waiting = request.state.setdefault("waiting", [])
    waiting.append(document)
    return list(waiting) if is_end(document) else DROP


def created_tasks(change: Callable[[list[str], Any, str], Any], *methods: str) -> list[Change]:
    """Change answers to GetTask; the function also takes all created ids and the requested one."""
    ids: list[str] = []

    def note(document: Any) -> Any:
        task = task_of(document.get("result", {"message": {}}))
        if task and "id" in task and task["id"] not in ids:
            ids.append(task["id"])
        return document

    def changed(document: Any, request: Request) -> Any:
        return change(ids, document, str(request.json["params"]["id"]))

    return [*documents(methods or (*SEND, *STREAM), note), *documents(GET_TASK, changed)]


def missing(document: Any, code: int = -32001) -> Any:
    """Report that the task does not exist."""
    error = {"code": code, "message": "Task not found"}
    return {"jsonrpc": "2.0", "id": document["id"], "error": error}


def kept_tasks() -> list[Change]:
    """Keep answering with deleted tasks."""
    sessions: dict[str, Any] = {}

    def changed(document: Any, request: Request) -> Any:
        id_ = request.json["params"]["id"]
        if "result" in document:
            sessions[id_] = document["result"]
        elif id_ in sessions:
            return {"jsonrpc": "2.0", "id": document["id"], "result": sessions[id_]}
        return document

    return documents(GET_TASK, changed)


TEXT = {"type": "string"}
TABLE: dict[str, dict[str, Any]] = {
    "MCP-01": {"tell_unknown_methods_as_success": messages("*", unknown_methods)},
    "MCP-02": {
        "compare_16_characters": keys(lambda own, sent: own[:16] == sent[:16]),
        "guard_all_but_calls": unguarded(rpc("tools/call")),
    },
    "MCP-03": {
        "list_a_tool_that_nobody_registered": tools(lambda v: [*v, {**v[0], "name": "admin"}])
    },
    "MCP-04": {
        "show_no_parameters_of_async_tools": schemas(always({"type": "object"}), "join"),
        "take_null_for_false": arguments(at("express", lambda value: value or None)),
    },
    "MCP-05": {"lose_fields_that_are_null": structured(drop_if(lambda value: value is None))},
    "MCP-06": {
        "let_the_prompt_be_left_out": prompt([], prompt=TEXT),
        "give_the_agent_256_characters": arguments(texts(cut(256)), "shout"),
    },
    "SVC-01": {"call_a_backend_once": by_tool(first, SERVICE)},
    "SVC-02": {"tell_errors_as_success": results(put(isError=False), route=SERVICE)},
    "SVC-03": {
        "refuse_the_key": refused(SERVICE, lambda request: bool(bearer(request)), 401),
        "be_down": statuses("* /mcp/*", 503),
    },
    "A2A-01": {
        "show_no_url": answers(CARD, put(supportedInterfaces=[], url="")),
        "show_a_url_where_nothing_is": answers(
            CARD, at("supportedInterfaces.*.url", lambda url: f"{url}/a2a/v1/rpc")
        ),
    },
    "A2A-02": {"tell_failures_as_completed": tasks(SEND, where(failed, state("completed")))},
    "A2A-03": {"hold_results_back": streamed(hold_back)},
    "A2A-04": {"keep_tasks_that_were_deleted": kept_tasks()},
}
