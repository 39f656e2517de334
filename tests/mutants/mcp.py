"""Mutants of the tools of MCP applications, and of the results of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.mutants import Mutant, lossy, wire
from tests.mutants.mcp_protocol import in_result, messages

TOOLS = "Tools listed and called are the functions registered with the tool decorators (4.3)"
DICT = "a dict return is recommended (4.6)"
AGENT = "agent_as_a_tool: async function (prompt: string) returning string (4.6)"
WRAPS = "wraps a whole agent as a tool; docstring states its capability boundary (4.6)"
ASYNC = ("join", "facts", "shout")
DICTS = ("place", "facts", "describe")
UNSTRUCTURED = lossy.without("structuredContent")

Tool = dict[str, Any]


# ---- which tools there are, and what they are called with


def _tools(change: Callable[[list[Tool]], list[Tool]]) -> wire.Change:
    return wire.calls("tools/list", lambda result: {**result, "tools": change(result["tools"])})


def _called(request: wire.Request) -> str:
    return str(request.json["params"]["name"])


def _arguments(change: Callable[[Any], Any], *names: str) -> wire.Change:
    """Change the arguments of calls of these tools, or of all tools."""

    def changed(params: Any) -> Any:
        if names and params["name"] not in names:
            return params
        return {**params, "arguments": change(params.get("arguments", {}))}

    return wire.called_with("tools/call", changed)


def _results(change: Callable[[Any], Any], *names: str) -> wire.Change:
    """Change the results of these tools, or of all tools."""

    def changed(result: Any, request: wire.Request) -> Any:
        return change(result) if not names or _called(request) in names else result

    return wire.calls("tools/call", changed)


def _said(change: lossy.Change, *names: str) -> wire.Change:
    return _results(in_result(change), *names)


def _other_tool(params: Any) -> Any:
    swapped = {"facts": "shout", "shout": "facts"}
    name = swapped.get(params["name"], params["name"])
    given = params.get("arguments", {})
    text = given.get("text", given.get("prompt", ""))
    own = {"facts": {"text": text}, "shout": {"prompt": text}}.get(name, given)
    return {**params, "name": name, "arguments": own}


def _repeat_the_first_result(patch: pytest.MonkeyPatch) -> None:
    """Answer each call of a tool with the result of its first call."""
    first: dict[str, Any] = {}

    def changed(result: Any, request: wire.Request) -> Any:
        return first.setdefault(_called(request), result)

    wire.calls("tools/call", changed)(patch)


def _list_only_once(patch: pytest.MonkeyPatch) -> None:
    """List no tools to a session that has seen them."""
    seen: set[str] = set()

    def listed(result: Any, request: wire.Request) -> Any:
        session = request.headers.get("mcp-session-id", "")
        again = session in seen
        seen.add(session)
        return {**result, "tools": []} if again else result

    wire.calls("tools/list", listed)(patch)


def _tell_unknown_tools_as_success(document: Any, _request: wire.Request) -> Any:
    if "error" not in document:
        return document
    return {"jsonrpc": "2.0", "id": document["id"], "result": {"content": [], "isError": False}}


def _coroutine(result: Any) -> Any:
    text = "<coroutine object join at 0x7f4be0c1a5e0>"
    return {"content": [{"type": "text", "text": text}], "isError": False}


def _numbers_as_floats(value: Any) -> Any:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return int(float(value)) if whole else value


def _without_empty(value: Any) -> Any:
    return {name: one for name, one in value.items() if one not in ("", [], {})}


LISTED = (
    Mutant("list_only_the_first_tool", "MCP-03", TOOLS, _tools(lambda tools: tools[:1])),
    Mutant(
        "list_no_async_tools",
        "MCP-03",
        TOOLS,
        _tools(lambda tools: [tool for tool in tools if tool["name"] not in ASYNC]),
    ),
    Mutant(
        "list_a_tool_that_nobody_registered",
        "MCP-03",
        TOOLS,
        _tools(lambda tools: [*tools, {**tools[0], "name": "admin"}]),
    ),
    Mutant("list_a_tool_twice", "MCP-03", TOOLS, _tools(lambda tools: [*tools, tools[0]])),
    Mutant(
        "list_names_in_capitals",
        "MCP-03",
        TOOLS,
        _tools(lambda tools: [{**tool, "name": tool["name"].upper()} for tool in tools]),
    ),
    Mutant("list_tools_only_once_in_a_session", "MCP-03", TOOLS, _list_only_once),
    Mutant("call_another_tool", "MCP-03", TOOLS, wire.called_with("tools/call", _other_tool)),
    Mutant(
        "tell_unknown_tools_as_success",
        "MCP-03",
        TOOLS,
        messages(_tell_unknown_tools_as_success, "tools/call"),
    ),
    Mutant("return_the_coroutine_of_an_async_tool", "MCP-03", TOOLS, _results(_coroutine, "join")),
    Mutant("repeat_the_first_result_of_a_tool", "MCP-03", TOOLS, _repeat_the_first_result),
    Mutant(
        "lose_white_space_at_the_ends_of_arguments",
        "MCP-03",
        TOOLS,
        _arguments(lossy.each_text(str.strip)),
    ),
    Mutant(
        "lose_line_breaks_in_arguments",
        "MCP-03",
        TOOLS,
        _arguments(lossy.each_text(lossy.to_one_line)),
    ),
    Mutant(
        "lose_what_is_not_ascii_in_arguments",
        "MCP-03",
        TOOLS,
        _arguments(lossy.each_text(lossy.to_ascii)),
    ),
    Mutant(
        "cut_arguments_after_4000_characters",
        "MCP-03",
        TOOLS,
        _arguments(lossy.each_text(lossy.cut(4000))),
    ),
    Mutant(
        "lose_optional_arguments",
        "MCP-03",
        TOOLS,
        _arguments(lossy.without("second"), "join"),
    ),
    Mutant("lose_empty_arguments", "MCP-03", TOOLS, _arguments(_without_empty)),
    Mutant(
        "lose_the_signs_of_numbers",
        "MCP-03",
        TOOLS,
        _arguments(lossy.each_value(lambda one: abs(one) if type(one) is int else one)),
    ),
    Mutant(
        "round_large_whole_numbers",
        "MCP-03",
        TOOLS,
        _arguments(lossy.each_value(_numbers_as_floats)),
        survives="JSON promises no whole numbers beyond 2**53 (RFC 8259, 6).",
    ),
    Mutant("lose_white_space_at_the_ends_of_results", "MCP-03", TOOLS, _said(str.strip, "join")),
    Mutant("lose_control_characters_of_results", "MCP-03", TOOLS, _said(lossy.without_controls)),
    Mutant("cut_results_after_64_kib", "MCP-03", TOOLS, _said(lossy.cut(65536))),
    Mutant("cut_results_after_256_characters", "MCP-03", TOOLS, _said(lossy.cut(256))),
    Mutant(
        "return_results_without_content",
        "MCP-03",
        TOOLS,
        _results(lambda _: {"content": [], "isError": False}, "add"),
    ),
    Mutant(
        "tell_wrong_arguments_as_success",
        "MCP-03",
        TOOLS,
        _results(lambda result: {**result, "isError": False}),
        also=("MCP-04",),
    ),
)


# ---- structured content


def _structured(change: Callable[[Any], Any], *names: str) -> wire.Change:
    """Change the structured content of the tools that return a dict."""

    def changed(result: Any) -> Any:
        if result.get("structuredContent") is None:
            return result
        return {**result, "structuredContent": change(result["structuredContent"])}

    return _results(changed, *(names or DICTS))


def _flat(value: dict[str, Any]) -> dict[str, Any]:
    return {k: str(one) if isinstance(one, dict) else one for k, one in value.items()}


def _only_strings(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else str(value)


def _first_of_lists(value: Any) -> Any:
    if isinstance(value, list):
        return [_first_of_lists(one) for one in value[:1]]
    if isinstance(value, dict):
        return {name: _first_of_lists(one) for name, one in value.items()}
    return value


def _repeat_structured(patch: pytest.MonkeyPatch) -> None:
    """Send the structured content of a tool's call before."""
    last: dict[str, Any] = {}

    def changed(result: Any, request: wire.Request) -> Any:
        if "structuredContent" not in result:
            return result
        before = last.get(_called(request), result["structuredContent"])
        last[_called(request)] = result["structuredContent"]
        return {**result, "structuredContent": before}

    wire.calls("tools/call", changed)(patch)


STRUCTURED = (
    Mutant("send_no_structured_content", "MCP-05", DICT, _results(UNSTRUCTURED)),
    Mutant(
        "structure_only_what_sync_tools_return",
        "MCP-05",
        DICT,
        _results(UNSTRUCTURED, "facts"),
    ),
    Mutant(
        "structure_only_what_async_tools_return",
        "MCP-05",
        DICT,
        _results(UNSTRUCTURED, "place"),
    ),
    Mutant("lose_fields_that_are_null", "MCP-05", DICT, _structured(lossy.without_nulls)),
    Mutant("write_nested_dicts_as_texts", "MCP-05", DICT, _structured(_flat)),
    Mutant(
        "cut_fractions_off",
        "MCP-05",
        DICT,
        _structured(lossy.each_value(lambda one: int(one) if type(one) is float else one)),
    ),
    Mutant(
        "write_booleans_as_numbers",
        "MCP-05",
        DICT,
        _structured(lossy.booleans_as_numbers),
    ),
    Mutant(
        "write_all_values_as_texts",
        "MCP-05",
        DICT,
        _structured(lossy.each_value(_only_strings)),
    ),
    Mutant("keep_only_the_first_item_of_lists", "MCP-05", DICT, _structured(_first_of_lists)),
    Mutant("wrap_a_dict_in_another", "MCP-05", DICT, _structured(lambda value: {"result": value})),
    Mutant(
        "lose_white_space_at_the_ends_of_structured_texts",
        "MCP-05",
        DICT,
        _structured(lossy.each_text(str.strip)),
    ),
    Mutant(
        "lose_what_is_not_ascii_in_structured_texts",
        "MCP-05",
        DICT,
        _structured(lossy.each_text(lossy.to_ascii)),
    ),
    Mutant(
        "cut_structured_texts_after_2000_characters",
        "MCP-05",
        DICT,
        _structured(lossy.each_text(lossy.cut(2000))),
    ),
    Mutant("send_the_structured_content_of_the_call_before", "MCP-05", DICT, _repeat_structured),
)


# ---- an agent as a tool


def _agent(change: Callable[[Tool], Tool]) -> wire.Change:
    return _tools(lambda tools: [change(one) if one["name"] == "shout" else one for one in tools])


def _prompt_schema(schema: Any) -> wire.Change:
    return _agent(lambda tool: {**tool, "inputSchema": schema})


def _prompt(change: lossy.Change) -> wire.Change:
    return _arguments(lossy.each_text(change), "shout")


def _object(required: list[str], **properties: Any) -> Any:
    return {"type": "object", "properties": properties, "required": required}


TEXT = {"type": "string"}
AGENTS = (
    Mutant(
        "list_no_agents",
        "MCP-06",
        AGENT,
        _tools(lambda tools: [tool for tool in tools if tool["name"] != "shout"]),
    ),
    Mutant(
        "call_the_prompt_a_message",
        "MCP-06",
        AGENT,
        _prompt_schema(_object(["message"], message=TEXT)),
    ),
    Mutant(
        "let_the_prompt_be_left_out",
        "MCP-06",
        AGENT,
        _prompt_schema(_object([], prompt=TEXT)),
    ),
    Mutant(
        "let_the_prompt_be_of_any_type",
        "MCP-06",
        AGENT,
        _prompt_schema(_object(["prompt"], prompt={})),
    ),
    Mutant(
        "take_a_session_besides_the_prompt",
        "MCP-06",
        AGENT,
        _prompt_schema(_object(["prompt", "session_id"], prompt=TEXT, session_id=TEXT)),
    ),
    Mutant(
        "state_only_the_begin_of_the_boundary",
        "MCP-06",
        WRAPS,
        _agent(lambda tool: {**tool, "description": tool["description"].partition(";")[0]}),
    ),
    Mutant(
        "state_no_boundary",
        "MCP-06",
        WRAPS,
        _agent(lambda tool: {**tool, "description": "An agent."}),
    ),
    Mutant("give_the_agent_one_line_of_the_prompt", "MCP-06", AGENT, _prompt(lossy.first_line)),
    Mutant("give_the_agent_256_characters", "MCP-06", AGENT, _prompt(lossy.cut(256))),
    Mutant("give_the_agent_ascii", "MCP-06", AGENT, _prompt(lossy.to_ascii)),
    Mutant(
        "return_the_last_line_of_the_agent",
        "MCP-06",
        AGENT,
        _said(lambda text: text.rpartition("\n")[2], "shout"),
    ),
    Mutant(
        "return_the_words_of_the_agent_in_quotes",
        "MCP-06",
        AGENT,
        _said(lambda text: f'"{text}"', "shout"),
    ),
    Mutant(
        "return_what_the_agent_was_asked",
        "MCP-06",
        AGENT,
        _said(str.lower, "shout"),
    ),
)

MUTANTS: tuple[Mutant, ...] = (
    *LISTED,
    *STRUCTURED,
    *AGENTS,
)
