"""The wire form of OpenAI's responses: ``POST /v1/responses``. ``stored_responses`` keeps them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agentdouble.errors import ModelError
from agentdouble.model import conversation, fields, openai_fields
from agentdouble.model.conversation import (
    Body,
    ConversationRequest,
    ModelAnswer,
    ModelTurn,
    ToolCall,
)
from agentdouble.model.stored_responses import StoredResponses

_ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant"}
_ECHOED: Body = {  # fields of a response that repeat the request's, with their defaults
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": None,
    "safety_identifier": None,
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
_RUNNING = "in_progress"
_LOGPROBS = "message.output_text.logprobs"
INCLUDABLE = (  # the others belong to tools of the vendor, or to what a script does not have
    *("file_search_call.results", "web_search_call.results", "web_search_call.action.sources"),
    *("message.input_image.image_url", "computer_call_output.output.image_url"),
    *("code_interpreter_call.outputs", "reasoning.encrypted_content", _LOGPROBS),
)
_CALLS = {"function_call": ("arguments", False), "custom_tool_call": ("input", True)}
_PARTS = fields.PARTS["responses"]
_RESULTS = ("function_call_output", "custom_tool_call_output")
_SILENT = frozenset(  # items of a conversation that say nothing to a script
    {
        *("additional_tools", "compaction", "compaction_trigger", "configuration_update"),
        *("reasoning", "program", "program_output"),
        *("apply_patch_call", "apply_patch_call_output", "code_interpreter_call"),
        *("computer_call", "computer_call_output", "file_search_call", "image_generation_call"),
        *("local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output"),
        *("mcp_approval_request", "mcp_approval_response", "mcp_call", "mcp_list_tools"),
        *("tool_search_call", "tool_search_output", "web_search_call"),
    }
)
ITEMS = frozenset({*_CALLS, *_RESULTS, *_SILENT, "item_reference", "message"})


def read(body: Body, stored: StoredResponses) -> ConversationRequest:
    """Return the request in a body, after what is stored of its conversation.

    Raises ModelError for one that is malformed.
    """
    fields.RESPONSES.check(body)
    items = stored.conversation(body)
    turns = [_turn(item, f"input[{i}]") for i, item in enumerate(items)]
    instructions = conversation.texts(body.get("instructions"), "instructions")
    system = [ModelTurn("system", instructions)] if instructions else []
    tools = openai_fields.named_tools(body, fields.TOOLS["responses"], is_nested=False)
    stream, text = conversation.flag(body, "stream"), body.get("text") or {}
    if conversation.flag(body, "background") and not conversation.flag(body, "store", True):
        raise ModelError("background true needs store true.", param="background")
    return ConversationRequest(
        form="responses",
        model=conversation.field(body, "model", str, ""),
        turns=tuple(
            conversation.named_results(turn for turn in [*system, *turns] if turn is not None)
        ),
        tools=tuple(tools),
        stream=stream,
        body=body,
        demands=openai_fields.demands(
            body,
            tools,
            is_nested=False,
            limit=conversation.integer(body, "max_output_tokens", 1),
            output=openai_fields.output_format(text.get("format"), "text.format", is_nested=False),
            logprobs=_logprobs(body),
        ),
        custom_tools=tuple(name for name, kind in tools.items() if kind == "custom"),
    )


def _logprobs(body: Body) -> int | None:
    included = conversation.strings(body.get("include"), len(INCLUDABLE), "include")
    unknown = [name for name in included if name not in INCLUDABLE]
    if unknown:
        raise ModelError(
            f"include must be among {', '.join(INCLUDABLE)}, not {unknown[0]!r:.80}.",
            param="include",
        )
    most = conversation.integer(body, "top_logprobs", 0, openai_fields.MOST_LIKELY)
    return (most or 0) if _LOGPROBS in included or most else None


def _turn(item: Body, where: str) -> ModelTurn | None:
    """Return the turn of an item, or None for one that says nothing to a script."""
    kind = item.get("type", "message")
    if kind in _CALLS:
        argument, is_custom = _CALLS[kind]
        name, arguments = (conversation.field(item, key, str, where) for key in ("name", argument))
        call = ToolCall(name, arguments, _call_id(item, where), is_custom)
        return ModelTurn("assistant", "", (call,))
    if kind in _RESULTS:
        return ModelTurn(
            "tool",
            conversation.texts(item.get("output"), f"{where}.output", _PARTS),
            call_id=_call_id(item, where),
        )
    if kind in _SILENT:
        return None
    if kind not in ITEMS:
        raise ModelError(f"{where}.type {kind!r:.60} is no type of an item.", param=f"{where}.type")
    role = conversation.field(item, "role", str, where)
    if role not in _ROLES:
        raise ModelError(f"{where}.role must be one of {', '.join(_ROLES)}, not {role!r:.80}.")
    return ModelTurn(
        _ROLES[role], conversation.texts(item.get("content"), f"{where}.content", _PARTS)
    )


def _call_id(item: Body, where: str) -> str:
    call_id: str = conversation.field(item, "call_id", str, where)
    return call_id


def whole(request: ConversationRequest, answer: ModelAnswer, created: int) -> dict[str, Any]:
    """Return an answer as one document."""
    status = "incomplete" if answer.is_cut else "completed"
    return _document(request, answer, created, status, _items(request, answer))


def queued(document: Body) -> dict[str, Any]:
    """Return what a request with ``background`` gets first; the document itself comes later."""
    return {**document, "status": "queued", "output": [], "usage": None, "incomplete_details": None}


def stream(request: ConversationRequest, answer: ModelAnswer, created: int) -> Iterator[bytes]:
    """Yield an answer as server-sent events."""
    for number, (name, data) in enumerate(_events(request, answer, created)):
        yield conversation.event({"type": name, "sequence_number": number, **data}, name)


def _events(
    request: ConversationRequest, answer: ModelAnswer, created: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    started = _document(request, answer, created, _RUNNING, [])
    yield "response.created", {"response": started}
    yield "response.in_progress", {"response": started}
    done = whole(request, answer, created)
    for index, item in enumerate(done["output"]):
        at = {"output_index": index}
        kind = item["type"]
        empty: Body = {"content": []} if kind == "message" else {_CALLS[kind][0]: ""}
        yield "response.output_item.added", {**at, "item": {**item, "status": _RUNNING, **empty}}
        parts = _message_events if kind == "message" else _call_events
        for name, data in parts(request, answer, item):
            yield name, {**at, "item_id": item["id"], **data}
        yield "response.output_item.done", {**at, "item": item}
    yield f"response.{done['status']}", {"response": done}


def _message_events(
    request: ConversationRequest, answer: ModelAnswer, item: Body
) -> Iterator[tuple[str, dict[str, Any]]]:
    at, part = {"content_index": 0}, item["content"][0]
    yield "response.content_part.added", {**at, "part": {**part, "text": "", "logprobs": []}}
    for piece in answer.pieces():
        logprobs = _probabilities(request, [piece], is_whole=False)
        yield "response.output_text.delta", {**at, "delta": piece, "logprobs": logprobs}
    logprobs = _probabilities(request, answer.pieces(), is_whole=False)
    yield "response.output_text.done", {**at, "text": answer.text, "logprobs": logprobs}
    yield "response.content_part.done", {**at, "part": part}


def _call_events(
    _request: ConversationRequest, _answer: ModelAnswer, item: Body
) -> Iterator[tuple[str, dict[str, Any]]]:
    argument, is_custom = _CALLS[item["type"]]
    text = item[argument]
    event = "response.custom_tool_call_input" if is_custom else "response.function_call_arguments"
    yield f"{event}.delta", {"delta": text}
    yield f"{event}.done", {**({} if is_custom else {"name": item["name"]}), argument: text}


def _probabilities(
    request: ConversationRequest, pieces: Sequence[str], *, is_whole: bool
) -> list[dict[str, Any]]:
    most = request.demands.logprobs
    if most is None:
        return []
    return [openai_fields.token(piece, most, is_whole=is_whole) for piece in pieces]


def _items(request: ConversationRequest, answer: ModelAnswer) -> list[dict[str, Any]]:
    status = "incomplete" if answer.is_cut else "completed"
    calls = [_call_item(call, "completed") for call in answer.calls]
    if calls:
        calls[-1]["status"] = status
    if not answer.text and calls:
        return calls
    logprobs = _probabilities(request, answer.pieces(), is_whole=True)
    part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": logprobs}
    message = {"type": "message", "id": f"msg_{answer.number}", "role": "assistant"}
    said = {**message, "status": "completed" if calls else status, "content": [part]}
    return [said, *calls]


def _call_item(call: ToolCall, status: str) -> dict[str, Any]:
    kind, prefix = ("custom_tool_call", "ctc") if call.is_custom else ("function_call", "fc")
    return {
        "type": kind,
        "id": f"{prefix}_{call.id}",
        "call_id": call.id,
        "name": call.name,
        _CALLS[kind][0]: call.text(),
        "status": status,
    }


def _document(
    request: ConversationRequest, answer: ModelAnswer, created: int, status: str, output: list[Any]
) -> dict[str, Any]:
    echoed = {
        name: default if request.body.get(name) is None else request.body[name]
        for name, default in _ECHOED.items()
    }
    reason = {"reason": "max_output_tokens"} if status == "incomplete" else None
    return {
        "id": f"resp_{answer.number}",
        "object": "response",
        "created_at": created,
        "completed_at": None if status == _RUNNING else created,
        "status": status,
        "model": request.model,
        "output": output,
        "error": None,
        "incomplete_details": reason,
        "service_tier": "default",
        "usage": None if status == _RUNNING else _usage(request, answer),
        **echoed,
    }


def _usage(request: ConversationRequest, answer: ModelAnswer) -> dict[str, Any]:
    size, words = conversation.request_size(request), answer.tokens()
    return {
        "input_tokens": size,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": words,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": size + words,
    }
