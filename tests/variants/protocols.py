"""The variants of MCP servers and of services."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tests.mutants.changes import OfValue, at, drop, put, where, with_header
from tests.mutants.protocols import DICTS, ENDPOINT, SERVICE, schemas, tools
from tests.mutants.wire import (
    Answer,
    Ask,
    Change,
    Request,
    around,
    called_with,
    calls,
    data_of,
    event_of,
    messages,
)
from tests.variants.forms import compressed_stream, nested, of_json, of_streams, status, with_status

MCP = ENDPOINT

# ---- MCP


def sent_as(form: Callable[[Any], tuple[str, bytes]]) -> Change:
    """Send replies of MCP in another form: their content type and content."""

    async def reply(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        events = "event-stream" in answer.headers.get("content-type", "")
        document = data_of(answer.body.replace(b"\r\n", b"\n")) if events else answer.json
        if answer.status == 200 and document is not None:
            answer.headers["content-type"], answer.body = form(document)
        return answer

    return around(f"POST {ENDPOINT[2:]}", reply)


def as_events(*before: bytes) -> Callable[[Any], tuple[str, bytes]]:
    """Send a reply as an event, after others."""
    return lambda document: ("text/event-stream", b"".join(before) + event_of(document))


NOTE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}


def as_protocol_error(document: Any) -> Any:
    """Report a tool's error as one of the protocol."""
    if not document.get("result", {}).get("isError"):
        return document
    return {"jsonrpc": "2.0", "id": document["id"], "error": {"code": -32602, "message": "No."}}


def as_tool_error(document: Any) -> Any:
    """Report the protocol's error as one of a tool."""
    if "error" not in document:
        return document
    content = [{"type": "text", "text": document["error"]["message"]}]
    return {
        "jsonrpc": "2.0",
        "id": document["id"],
        "result": {"content": content, "isError": True},
    }


def without_sessions() -> list[Change]:
    """Give no id to sessions; requests belong to the one that was opened last."""
    opened: dict[str, str] = {}

    async def reply(request: Request, ask: Ask) -> Answer:
        if request.method == "DELETE":
            return Answer(405, {}, b"")
        session = opened.get(request.path)
        if session is not None and b'"initialize"' not in request.body:
            request = with_header(request, "mcp-session-id", session)
        answer = await ask(request)
        new = answer.headers.pop("mcp-session-id", None)
        if new is not None and b'"initialize"' in request.body:
            opened[request.path] = new
        return answer

    return [around(f"{method} {ENDPOINT[2:]}", reply) for method in ("POST", "DELETE")]


def on_pages() -> list[Change]:
    """List tools on two pages."""

    def chosen(params: Any, request: Request) -> Any:
        request.state["second"] = (params or {}).get("cursor") == "second"
        return drop("cursor")(params or {})

    def page(result: Any, request: Request) -> Any:
        some = result["tools"]
        if request.state.get("second"):
            return {**result, "tools": some[1:]}
        return {**result, "tools": some[:1], "nextCursor": "second"}

    route = "POST /mcp"  # a service passes the pages of its backend on
    return [called_with("tools/list", chosen, route), calls("tools/list", page, route)]


def definitions(schema: Any) -> Any:
    """Keep definitions under their older name."""
    text = json.dumps(schema).replace('"#/$defs/', '"#/definitions/')
    return json.loads(text.replace('"$defs": ', '"definitions": '))


def types_in_a_list(schema: Any) -> Any:
    """Write alternatives of types as a list."""
    kinds = [option.get("type") for option in schema.get("anyOf", ())]
    return {**drop("anyOf")(schema), "type": kinds} if all(kinds) and kinds else schema


def constants(schema: Any) -> Any:
    """Write an enum as alternatives."""
    if not isinstance(schema.get("enum"), list):
        return schema
    return {**drop("enum", "type")(schema), "oneOf": [{"const": it} for it in schema["enum"]]}


def unstructured(result: Any, request: Request) -> Any:
    """Send structured content only for tools that return a dict."""
    return result if request.json["params"]["name"] in DICTS else drop("structuredContent")(result)


def untold(result: Any, request: Request) -> Any:
    """Send no text beside structured content."""
    of_dict = request.json["params"]["name"] in DICTS and not result.get("isError")
    return {**result, "content": []} if of_dict else result


def ids_in_another_form() -> list[Change]:
    """Give sessions ids of other visible characters, and know them by these."""
    name, suffix = "mcp-session-id", "~!#{}"

    async def reply(request: Request, ask: Ask) -> Answer:
        if id_ := request.header(name):
            request = with_header(request, name, id_.removesuffix(suffix))
        answer = await ask(request)
        if name in answer.headers:
            answer.headers[name] += suffix
        return answer

    return [around(f"{method} {ENDPOINT[2:]}", reply) for method in ("POST", "DELETE")]


def multiples(schema: Any) -> Any:
    """Write integers as numbers without a fraction."""
    whole = schema.get("type") == "integer"
    return {**schema, "type": "number", "multipleOf": 1} if whole else schema


DRAFT_7 = "http://json-schema.org/draft-07/schema#"
PING = {"jsonrpc": "2.0", "id": "of-the-server", "method": "ping"}
ICON = {"src": "https://icons.example/a.png", "mimeType": "image/png", "sizes": ["48x48"]}
LINK = {"type": "resource_link", "uri": "file:///a", "name": "a"}
MCP_VARIANTS: dict[str, Any] = {
    "tools_in_another_order": tools(lambda some: some[::-1]),
    "tools_with_annotations": tools(at("*", put(title="T", annotations={"readOnlyHint": True}))),
    "tools_with_icons_and_metadata": tools(at("*", put(icons=[ICON], _meta={"trace": "1"}))),
    "tools_that_run_at_once": tools(at("*", put(execution={"taskSupport": "forbidden"}))),
    "tools_without_output_schemas": tools(at("*", drop("outputSchema"))),
    "tools_on_two_pages": on_pages(),
    "schemas_with_titles": schemas(put(title="Arguments")),
    "schemas_that_refuse_more": schemas(put(additionalProperties=False)),
    "schemas_with_definitions": schemas(definitions),
    "schemas_with_descriptions": schemas(
        at(
            "properties",
            lambda some: {
                name: {"description": "An argument.", **schema} for name, schema in some.items()
            },
        )
    ),
    "schemas_of_draft_7": schemas(lambda it: {"$schema": DRAFT_7, **definitions(it)}),
    "schemas_of_numbers_without_a_fraction": schemas(nested(multiples)),
    "schemas_with_types_in_a_list": schemas(nested(types_in_a_list)),
    "schemas_with_constants": schemas(nested(constants)),
    "results_with_metadata": calls("tools/call", put(_meta={"trace": "1"})),
    "every_result_with_metadata": [
        calls(method, put(_meta={"trace": "1"})) for method in ("initialize", "tools/list", "ping")
    ],
    "blocks_with_annotations": calls(
        "tools/call", at("content.*", put(annotations={"audience": ["user"]}, _meta={}))
    ),
    "results_with_links": calls("tools/call", at("content", lambda some: [*some, LINK])),
    "results_without_structure": calls("tools/call", unstructured),
    "results_without_text": calls("tools/call", untold),
    "results_without_is_error": calls(
        "tools/call", where(lambda it: not it.get("isError"), drop("isError"))
    ),
    "wrong_arguments_are_errors_of_the_protocol": messages("tools/call", as_protocol_error),
    "unknown_tools_are_errors_of_a_tool": messages("tools/call", as_tool_error),
    "errors_with_data": messages("*", at("error", put(message="No.", data={"a": 1}))),
    "the_oldest_version": calls("initialize", put(protocolVersion="2025-03-26")),
    "an_older_version": calls("initialize", put(protocolVersion="2025-06-18")),
    "an_agreement_with_further_fields": calls(
        "initialize",
        lambda it: at("capabilities", put(completions={}))({**it, "instructions": "Call."}),
    ),
    "replies_as_json": sent_as(lambda it: ("application/json", json.dumps(it).encode())),
    "replies_as_events": sent_as(as_events()),
    "replies_after_an_empty_event": sent_as(as_events(b"id: 1\nretry: 9\ndata:\n\n")),
    "replies_after_a_notification": sent_as(as_events(event_of(NOTE))),
    "replies_after_a_request": sent_as(as_events(event_of(PING), event_of(NOTE))),
    "replies_in_capitals": [
        sent_as(lambda it: ("Application/JSON; Charset=UTF-8", json.dumps(it).encode()))
    ],
    "replies_with_further_members": messages("*", put(trace="1"), MCP),
    "errors_with_a_status": [
        sent_as(lambda it: ("application/json", json.dumps(it).encode())),
        with_status(f"POST {ENDPOINT[2:]}", 400),
    ],
    "sessions_without_ids": without_sessions(),
    "session_ids_in_another_form": ids_in_another_form(),
    "an_ended_session_is_204": status(f"DELETE {ENDPOINT[2:]}", 200, 204),
    "an_ended_session_is_202": status(f"DELETE {ENDPOINT[2:]}", 200, 202),
    "no_stream_of_the_server": around(f"GET {ENDPOINT[2:]}", lambda *_: refused_method()),
    "notifications_are_204": status(f"POST {ENDPOINT[2:]}", 202, 204),
    "a_refused_key_is_403": status(MCP, 401, 403),
    "a_refused_key_is_404": status(MCP, 401, 404),
}


MCP_SERVERS = {
    **of_json(MCP),
    **of_streams(MCP),
    "a_compressed_stream": compressed_stream(SERVICE),  # its backend's would be compressed twice
    **MCP_VARIANTS,
}


async def refused_method() -> Answer:
    """Refuse a method of HTTP."""
    return Answer(405, {"allow": "POST"}, b"")


# ---- services


OF_THE_API = re.compile("(find|add|change|correct|remove|fail)(Things?|Part)")


def named(change: Callable[[str], str], back: Callable[[str], str]) -> list[Change]:
    """Name the tools of the reference API differently."""
    return [
        tools(at("*.name", lambda it: change(it) if OF_THE_API.search(it) else it), SERVICE),
        called_with("tools/call", at("name", back), SERVICE),
    ]


def of_the_api(change: OfValue) -> Change:
    """Change the results of the reference API."""

    def changed(result: Any, request: Request) -> Any:
        name = request.json["params"]["name"]
        return change(result) if OF_THE_API.search(name) and not result.get("isError") else result

    return calls("tools/call", changed, SERVICE)


def in_an_envelope(text: str) -> str:
    """Send the answer of an API as a part of JSON."""
    try:
        return json.dumps({"status": 200, "headers": {}, "body": json.loads(text)})
    except ValueError:
        return text


SERVICES: dict[str, Any] = {
    **of_json(MCP, "json_keys_backwards"),
    **MCP_VARIANTS,
    "operations_with_a_prefix": named("things__{}".format, lambda it: it.removeprefix("things__")),
    "answers_of_an_api_as_text_alone": of_the_api(drop("structuredContent")),
    "answers_of_an_api_in_an_envelope": of_the_api(
        lambda it: at("content.*.text", in_an_envelope)(drop("structuredContent")(it))
    ),
}
