"""Mutants of MCP services: their access records, and what stands between them and a backend."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from agentdouble.mcp_services import backends, handle
from agentdouble.mcp_services.openapi import contents, requests, serving
from agentdouble.mcp_services.openapi.backend import Answer, Backend
from agentdouble.mcp_services.service import access_record
from tests.mutants import Mutant, lossy, wire
from tests.mutants.mcp_protocol import in_result

SERVICE = "/mcp/"
CAPABLE = "The backend is either an MCP-capable service or an HTTP service (1)"
SWAGGER = "an HTTP service with a Swagger JSON definition (1)"
YIELDS = "Creation yields an endpoint and an API key (1)"
MAPS = "It maps a service name to an object (2.5)"
URL = "httpUrl: the MCP service endpoint, shape {gateway_url}/mcp/<service_name> (2.5)"
KEY = "headers.Authorization: Bearer <API_KEY> (2.5)"

Patch = Callable[[pytest.MonkeyPatch], None]


# ---- what passes through a service


def _through(method: str, change: Callable[..., Any]) -> wire.Change:
    """Change the results of a method, but only those that pass through a service."""

    def changed(result: Any, request: wire.Request) -> Any:
        return change(result, request) if request.path.startswith(SERVICE) else result

    return wire.calls(method, changed)


def _tools(change: Callable[[Any], Any]) -> wire.Change:
    return _through("tools/list", lambda result, _: {**result, "tools": change(result["tools"])})


def _results(change: Callable[[Any], Any]) -> wire.Change:
    return _through("tools/call", lambda result, _: change(result))


def _arguments(change: lossy.Change) -> wire.Change:
    def changed(params: Any, request: wire.Request) -> Any:
        if not request.path.startswith(SERVICE):
            return params
        return {**params, "arguments": lossy.in_texts(params.get("arguments", {}), change)}

    return wire.called_with("tools/call", changed)


def _without_schemas(tools: Any) -> Any:
    return [{**tool, "inputSchema": {"type": "object"}} for tool in tools]


def _repeat_the_first_result(patch: pytest.MonkeyPatch) -> None:
    """Answer each call of a tool of a service with the result of its first call."""
    first: dict[tuple[str, str], Any] = {}

    def changed(result: Any, request: wire.Request) -> Any:
        return first.setdefault((request.path, request.json["params"]["name"]), result)

    wire.install(patch, _through("tools/call", changed))


def _send_all_to_the_first_backend(patch: pytest.MonkeyPatch) -> None:
    """Pass the requests of every service on to the backend of the first."""
    hosted, first = backends.McpBackend.hosted, []

    def crossed(self: backends.McpBackend, name: str) -> Any:
        first.append(self)
        return hosted(first[0], name)

    patch.setattr(backends.McpBackend, "hosted", crossed)


BACKENDS = (
    Mutant(
        "list_only_the_first_tool_of_a_backend", "SVC-01", CAPABLE, _tools(lambda all_: all_[:1])
    ),
    Mutant(
        "list_tools_under_names_that_cannot_be_called",
        "SVC-01",
        CAPABLE,
        _tools(lambda tools: [{**tool, "name": f"backend.{tool['name']}"} for tool in tools]),
    ),
    Mutant("list_tools_without_their_parameters", "SVC-01", CAPABLE, _tools(_without_schemas)),
    Mutant(
        "list_tools_without_their_descriptions",
        "SVC-01",
        CAPABLE,
        _tools(lambda tools: [{**tool, "description": ""} for tool in tools]),
    ),
    Mutant("lose_what_is_not_ascii_on_the_way", "SVC-01", CAPABLE, _arguments(lossy.to_ascii)),
    Mutant("lose_white_space_on_the_way", "SVC-01", CAPABLE, _arguments(str.strip)),
    Mutant("cut_what_a_backend_answers", "SVC-01", CAPABLE, _results(in_result(lossy.cut(2000)))),
    Mutant(
        "lose_structured_content_on_the_way",
        "SVC-01",
        CAPABLE,
        _results(lossy.without("structuredContent")),
    ),
    Mutant(
        "tell_errors_of_a_backend_as_success",
        "SVC-01",
        CAPABLE,
        _results(lambda result: {**result, "isError": False}),
    ),
    Mutant("ask_a_backend_once_for_each_tool", "SVC-01", CAPABLE, _repeat_the_first_result),
    Mutant(
        "send_all_services_to_the_first_backend", "SVC-01", CAPABLE, _send_all_to_the_first_backend
    ),
)


# ---- the operations of an HTTP API


def _request(change: Callable[[requests.Request], requests.Request]) -> Patch:
    """Change the requests to the API."""
    built = requests.build

    def changed(*given: Any) -> requests.Request:
        return change(built(*given))

    return lambda patch: patch.setattr(requests, "build", changed)


def _answer(change: Callable[[Answer], Answer]) -> Patch:
    """Change the answers of the API."""
    send = Backend.send

    async def changed(self: Backend, request: requests.Request) -> Answer:
        return change(await send(self, request))

    return lambda patch: patch.setattr(Backend, "send", changed)


def _given(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Patch:
    """Change the arguments of calls before a request is made of them."""
    built = requests.build

    def changed(operation: Any, arguments: Any, base_url: str) -> requests.Request:
        return built(operation, change(dict(arguments)), base_url)

    return lambda patch: patch.setattr(requests, "build", changed)


def _first_operation_for_each(patch: pytest.MonkeyPatch) -> None:
    """Call the path of the operation that was called first."""
    built, first = requests.build, []

    def changed(operation: Any, arguments: Any, base_url: str) -> requests.Request:
        first.append(operation.path)
        return built(dataclasses.replace(operation, path=first[0]), arguments, base_url)

    patch.setattr(requests, "build", changed)


def _call_nothing(patch: pytest.MonkeyPatch) -> None:
    """Answer calls without asking the API."""

    async def answered(_self: Backend, _request: requests.Request) -> Answer:
        return Answer(200, "application/json", "utf-8", b'{"ok": true}')

    patch.setattr(Backend, "send", answered)


def _lose_bodies(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(contents, "of", lambda _body, _arguments: contents.Content())


def _lose_header_parameters(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(requests, "_headers", lambda _operation, _arguments: [])


def _answer_of_the_first_call(patch: pytest.MonkeyPatch) -> None:
    """Ask the API once for each tool, and keep the answer."""
    send = Backend.send
    kept: dict[str, Answer] = {}

    async def cached(self: Backend, request: requests.Request) -> Answer:
        where = f"{request.method} {request.url.partition('?')[0]}"
        if where not in kept:
            kept[where] = await send(self, request)
        return kept[where]

    patch.setattr(Backend, "send", cached)


def _operations(keep: Callable[[list[Any]], list[Any]]) -> Patch:
    """Make tools of only some operations."""
    made = serving._Tools._all
    return lambda patch: patch.setattr(serving._Tools, "_all", lambda self: keep(made(self)))


def _without_lists(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: one[:1] if isinstance(one, list) else one for name, one in arguments.items()}


def _without_falsy(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in arguments.items() if one not in (0, "", False, None)}


def _replaced(content: Callable[[bytes], bytes]) -> Callable[[Answer], Answer]:
    return lambda answer: dataclasses.replace(answer, content=content(answer.content))


APIS = (
    Mutant(
        "make_a_tool_of_the_first_operation", "SVC-02", SWAGGER, _operations(lambda all_: all_[:1])
    ),
    Mutant(
        "make_tools_of_get_alone",
        "SVC-02",
        SWAGGER,
        _operations(lambda all_: [one for one in all_ if one.method == "GET"]),
    ),
    Mutant("call_nothing", "SVC-02", SWAGGER, _call_nothing),
    Mutant("call_the_path_that_was_called_first", "SVC-02", SWAGGER, _first_operation_for_each),
    Mutant(
        "call_every_operation_with_post",
        "SVC-02",
        SWAGGER,
        _request(lambda request: dataclasses.replace(request, method="POST")),
    ),
    Mutant(
        "lose_the_query",
        "SVC-02",
        SWAGGER,
        _request(lambda request: dataclasses.replace(request, url=request.url.partition("?")[0])),
    ),
    Mutant("lose_the_body", "SVC-02", SWAGGER, _lose_bodies),
    Mutant("lose_parameters_of_the_header", "SVC-02", SWAGGER, _lose_header_parameters),
    Mutant("send_only_the_first_of_a_list", "SVC-02", SWAGGER, _given(_without_lists)),
    Mutant("lose_arguments_that_are_zero_or_false", "SVC-02", SWAGGER, _given(_without_falsy)),
    Mutant(
        "lose_what_is_not_ascii_in_arguments",
        "SVC-02",
        SWAGGER,
        _given(lossy.each_text(lossy.to_ascii)),
    ),
    Mutant("call_an_address_once", "SVC-02", SWAGGER, _answer_of_the_first_call),
    Mutant(
        "tell_errors_of_the_api_as_success",
        "SVC-02",
        SWAGGER,
        _answer(lambda answer: dataclasses.replace(answer, status=200)),
    ),
    Mutant("cut_answers_of_the_api", "SVC-02", SWAGGER, _results(in_result(lossy.cut(256)))),
    Mutant("lose_answers_of_the_api", "SVC-02", SWAGGER, _answer(_replaced(lambda _: b"{}"))),
    Mutant(
        "lose_what_is_not_ascii_in_answers", "SVC-02", SWAGGER, _results(in_result(lossy.to_ascii))
    ),
)


# ---- access records


def _record(change: Callable[[str, Any], Any]) -> Patch:
    """Change access records; the function takes the name of a service and its entry."""

    def patched(patch: pytest.MonkeyPatch) -> None:
        def changed(service: Any, gateway_url: str) -> Any:
            entry = access_record(service, gateway_url)["mcpServers"][service.name]
            plain = {"httpUrl": entry["httpUrl"], "headers": dict(entry["headers"])}
            return {"mcpServers": change(service.name, plain)}

        patch.setattr(handle, "access_record", changed)

    return patched


def _at(place: Callable[[str, str], str]) -> Patch:
    """Change the httpUrl of records; the function takes the name and the URL."""
    return _record(lambda name, entry: {name: {**entry, "httpUrl": place(name, entry["httpUrl"])}})


def _header(value: Callable[[str], dict[str, str]]) -> Patch:
    """Change the headers of records; the function takes the key."""

    def changed(name: str, entry: Any) -> Any:
        key = entry["headers"]["Authorization"].removeprefix("Bearer ")
        return {name: {**entry, "headers": value(key)}}

    return _record(changed)


def _every_service(patch: pytest.MonkeyPatch) -> None:
    """Show in a record the services whose records were asked for before."""
    known: dict[str, Any] = {}

    def changed(name: str, entry: Any) -> Any:
        known[name] = entry
        return dict(known)

    _record(changed)(patch)


RECORDS = (
    Mutant(
        "show_the_gateway_for_the_endpoint",
        "SVC-03",
        URL,
        _at(lambda _, url: url.partition("/mcp/")[0]),
    ),
    Mutant(
        "show_the_endpoint_without_the_name",
        "SVC-03",
        URL,
        _at(lambda _, url: url.rpartition("/")[0]),
    ),
    Mutant(
        "show_the_name_before_mcp",
        "SVC-03",
        URL,
        _at(lambda name, url: f"{url.partition('/mcp/')[0]}/{name}/mcp"),
    ),
    Mutant("show_a_path_for_the_url", "SVC-03", URL, _at(lambda name, _: f"/mcp/{name}")),
    Mutant(
        "show_an_id_for_the_name",
        "SVC-03",
        URL,
        _at(lambda _, url: f"{url.rpartition('/')[0]}/mcp-4f2a91c6"),
    ),
    Mutant(
        "call_the_url_url",
        "SVC-03",
        URL,
        _record(lambda name, entry: {name: {"url": entry["httpUrl"], "headers": entry["headers"]}}),
    ),
    Mutant(
        "list_the_services_of_a_record",
        "SVC-03",
        MAPS,
        _record(lambda name, entry: [{"name": name, **entry}]),
    ),
    Mutant("map_a_constant_name", "SVC-03", MAPS, _record(lambda _, entry: {"default": entry})),
    Mutant("show_other_services_in_a_record", "SVC-03", MAPS, _every_service),
    Mutant(
        "show_the_key_without_bearer", "SVC-03", KEY, _header(lambda key: {"Authorization": key})
    ),
    Mutant("show_the_key_as_x_api_key", "SVC-03", KEY, _header(lambda key: {"X-API-Key": key})),
    Mutant(
        "show_a_masked_key",
        "SVC-03",
        KEY,
        _header(lambda key: {"Authorization": f"Bearer {key[:4]}****"}),
    ),
    Mutant("show_no_key", "SVC-03", YIELDS, _header(lambda _: {})),
)

MUTANTS: tuple[Mutant, ...] = (*BACKENDS, *APIS, *RECORDS)
