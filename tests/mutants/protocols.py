"""Mutants of MCP servers (MCP), of services (SVC) and of A2A applications (A2A)."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from tests.mutants.changes import (
    OfValue,
    admitted,
    always,
    at,
    cut,
    drop,
    drop_if,
    first,
    previous,
    put,
    texts,
    to_ascii,
    where,
    without_controls,
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
    requested,
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


def returned(change: Callable[[str], str], *names: str, route: str = "* *") -> Change:
    """Change the texts in results."""

    def changed(result: Any) -> Any:
        result = at("content.*.text", change)(result)
        return at("structuredContent", texts(change))(result)

    return results(changed, *names, route=route)


def by_tool(change: Callable[[], OfValue], route: str = "* *") -> Change:
    """Change results with a separate change for each tool."""
    changes: dict[str, OfValue] = {}

    def changed(result: Any, request: Request) -> Any:
        return changes.setdefault(request.path + name_of(request), change())(result)

    return calls("tools/call", changed, route)


def structured(change: OfValue) -> Change:
    """Change the structured content of tools that return a dict."""
    return results(at("structuredContent", where(bool, change)), *DICTS)


def success(document: Any) -> Any:
    """Turn a JSON-RPC error into a success."""
    if "error" not in document:
        return document
    return {"jsonrpc": "2.0", "id": document["id"], "result": {"content": [], "isError": False}}


def schemas(change: Callable[[Any], Any], name: str = "*") -> Change:
    """Change the input schema of one tool, or of all."""
    return tool(name, at("inputSchema", change))


def nested(change: Callable[[Any], Any]) -> OfValue:
    """Change a schema and all its subschemas."""

    def deep(value: Any) -> Any:
        if isinstance(value, list):
            return [deep(item) for item in value]
        if isinstance(value, dict):
            return change({name: deep(item) for name, item in value.items()})
        return value

    return deep


def retyped(of: str, new: str) -> OfValue:
    """Replace a type in schemas with another."""
    return nested(lambda schema: {**schema, "type": new} if schema.get("type") == of else schema)


def prompt(required: list[str], **properties: Any) -> Change:
    """Replace the parameters of the agent."""
    schema = {"type": "object", "properties": properties, "required": required}
    return schemas(always(schema), "shout")


# ---- the protocol and its keys


def initialized(change: Callable[..., Any]) -> Change:
    """Change the result of initialize."""
    return calls("initialize", change)


def unknown_methods(document: Any) -> Any:
    """Answer unknown methods with a success."""
    missing = document.get("error", {}).get("code") == -32601
    return {"jsonrpc": "2.0", "id": document["id"], "result": {}} if missing else document


def first_session_alone() -> Change:
    """Accept only the first session."""
    opened: list[str] = []

    def change_request(request: Request) -> None:
        session = request.header("mcp-session-id")
        if session and session not in opened:
            opened.append(session)
        if session in opened[1:]:
            del request.headers["mcp-session-id"]

    return requested(f"POST {ENDPOINT[2:]}", change_request)


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
EMPTY_TASK = {"id": "t", "contextId": "", "status": {"state": "TASK_STATE_SUBMITTED"}}
TABLE: dict[str, dict[str, Any]] = {
    "MCP-01": {
        "tell_unknown_methods_as_success": messages("*", unknown_methods),
        "name_no_protocol_version": initialized(drop("protocolVersion")),
        "name_no_server": initialized(drop("serverInfo")),
        "know_the_first_session_alone": first_session_alone(),
    },
    "MCP-02": {
        "accept_requests_without_a_key": keys(lambda own, _: not own),
        "accept_the_beginning_of_a_key": keys(lambda own, sent: own and sent.startswith(own)),
        "compare_16_characters": keys(lambda own, sent: own[:16] == sent[:16]),
        "accept_a_key_in_x_api_key": unguarded(lambda r: r.header("x-api-key")),
        "guard_all_but_calls": unguarded(rpc("tools/call")),
        "refuse_the_right_key": refused("POST /mcp/{name}", lambda r: bool(bearer(r)), 401),
    },
    "MCP-03": {
        "list_the_first_tool": tools(lambda some: some[:1]),
        "list_a_tool_that_nobody_registered": tools(lambda v: [*v, {**v[0], "name": "admin"}]),
        "strip_arguments": arguments(texts(str.strip)),
        "lose_what_is_not_ascii": arguments(texts(to_ascii)),
        "lose_control_characters": returned(without_controls),
        "return_no_content": results(always({"content": [], "isError": False}), "add"),
    },
    "MCP-04": {
        "show_whole_numbers_as_numbers": schemas(retyped("integer", "number")),
        "show_no_parameters_of_async_tools": schemas(always({"type": "object"}), "join"),
        "require_no_parameter": schemas(drop("required")),
        "describe_nothing": tool("*", put(description="")),
        "describe_by_the_name": tool("*", lambda entry: {**entry, "description": entry["name"]}),
        "take_null_for_false": arguments(at("express", lambda value: value or None)),
    },
    "MCP-05": {
        "send_no_structured_content": results(drop("structuredContent")),
        "lose_fields_that_are_null": structured(drop_if(lambda value: value is None)),
        "strip_texts": structured(texts(str.strip)),
        "send_the_content_before": by_tool(lambda: at("structuredContent", previous())),
    },
    "MCP-06": {
        "list_no_agents": tools(drop_if(lambda entry: entry["name"] == "shout")),
        "let_the_prompt_be_left_out": prompt([], prompt=TEXT),
        "give_the_agent_256_characters": arguments(texts(cut(256)), "shout"),
        "return_small_letters": returned(str.lower, "shout"),
    },
    "SVC-01": {
        "list_the_first_tool": tools(lambda some: some[:1], SERVICE),
        "list_no_parameters": tools(at("*.inputSchema", always({"type": "object"})), SERVICE),
        "lose_structured_content": results(drop("structuredContent"), route=SERVICE),
        "call_a_backend_once": by_tool(first, SERVICE),
    },
    "SVC-02": {
        "make_a_tool_of_the_first_operation": tools(lambda some: some[:1], SERVICE),
        "call_nothing": results(
            always({"content": [{"type": "text", "text": '{"ok": true}'}]}), route=SERVICE
        ),
        "tell_errors_as_success": results(put(isError=False), route=SERVICE),
        "lose_what_is_not_ascii_in_answers": returned(to_ascii, route=SERVICE),
    },
    "SVC-03": {
        "serve_nothing_at_the_url": statuses(SERVICE, 404),
        "refuse_the_key": refused(SERVICE, lambda request: bool(bearer(request)), 401),
        "be_down": statuses("* /mcp/*", 503),
    },
    "A2A-01": {
        "serve_no_card": statuses(CARD, 404),
        "wrap_the_card": answers(CARD, lambda card: {"card": card}),
        "show_no_url": answers(CARD, put(supportedInterfaces=[], url="")),
        "show_a_url_where_nothing_is": answers(
            CARD, at("supportedInterfaces.*.url", lambda url: f"{url}/a2a/v1/rpc")
        ),
    },
    "A2A-02": {
        "give_the_executor_256_characters": message(at("parts.*.text", cut(256))),
        "cut_results_at_2000": tasks(SEND, at("artifacts.*.parts", texts(cut(2000)))),
        "tell_failures_as_completed": tasks(SEND, where(failed, state("completed"))),
        "forget_the_context": message(drop("contextId")),
    },
    "A2A-03": {
        "hold_results_back": streamed(hold_back),
        "send_the_first_result_alone": numbered(lambda number: number == 1),
        "lose_what_is_not_ascii": updates(at("artifact.parts", texts(to_ascii))),
        "send_no_end": streamed(lambda document, _: DROP if is_end(document) else document),
    },
    "A2A-04": {
        "keep_tasks_that_were_deleted": kept_tasks(),
        "answer_with_the_first_task_for_each": tasks(GET_TASK, first()),
        "store_no_tasks_of_streams": created_tasks(
            lambda ids, d, id_: missing(d) if id_ in ids else d, *STREAM
        ),
        "store_tasks_under_another_id": tasks(GET_TASK, lambda v: {**v, "id": uuid.uuid4().hex}),
    },
}
