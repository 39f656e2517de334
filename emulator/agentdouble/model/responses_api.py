"""The wire form of OpenAI's responses: ``POST /v1/responses``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentdouble.errors import ModelError
from agentdouble.model import conversation
from agentdouble.model.conversation import (
    Body,
    ConversationRequest,
    ModelAnswer,
    ModelTurn,
    ToolCall,
)

_STATELESS = "the double keeps no responses; send the whole conversation as input."
_REFUSED = {
    "previous_response_id": _STATELESS,
    "conversation": _STATELESS,
    "background": "an answer is always sent at once.",
    "prompt": "the double has no stored prompts; send instructions and input.",
}
_ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant"}
_ECHOED: Body = {  # fields of a response that repeat the request's, with their defaults
    "instructions": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "max_output_tokens": None,
    "reasoning": None,
    "text": {"format": {"type": "text"}},
}


def read(body: Body) -> ConversationRequest:
    """Return the request in a body. Raise ModelError for one that is malformed."""
    conversation.refuse_fields(body, _REFUSED)
    items = body.get("input")
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    turns = [
        _turn(item, f"input[{i}]") for i, item in enumerate(conversation.objects(items, "input"))
    ]
    instructions = conversation.texts(body.get("instructions"), "instructions")
    system = [ModelTurn("system", instructions)] if instructions else []
    tools = [
        tool
        for tool in conversation.objects(body.get("tools"), "tools")
        if tool.get("type") == "function"
    ]
    return ConversationRequest(
        form="responses",
        model=conversation.field(body, "model", str, ""),
        turns=tuple(
            conversation.named_results(turn for turn in [*system, *turns] if turn is not None)
        ),
        tools=tuple(conversation.field(tool, "name", str, "tools") for tool in tools),
        stream=body.get("stream") is True,
        body=body,
    )


def _turn(item: Body, where: str) -> ModelTurn | None:
    """Return the turn of an item, or None for one that says nothing to a script."""
    kind = item.get("type", "message")
    if kind == "function_call":
        name, arguments = (
            conversation.field(item, key, str, where) for key in ("name", "arguments")
        )
        return ModelTurn("assistant", "", (ToolCall(name, arguments, _call_id(item, where)),))
    if kind == "function_call_output":
        return ModelTurn(
            "tool", conversation.texts(item.get("output"), where), call_id=_call_id(item, where)
        )
    if kind != "message":
        return None
    role = conversation.field(item, "role", str, where)
    if role not in _ROLES:
        raise ModelError(f"{where}.role must be one of {', '.join(_ROLES)}, not {role!r:.80}.")
    return ModelTurn(_ROLES[role], conversation.texts(item.get("content"), f"{where}.content"))


def _call_id(item: Body, where: str) -> str:
    call_id: str = conversation.field(item, "call_id", str, where)
    return call_id


def whole(request: ConversationRequest, answer: ModelAnswer, created: int) -> dict[str, Any]:
    """Return an answer as one document."""
    return _document(request, answer, created, "completed", _items(answer))


def stream(request: ConversationRequest, answer: ModelAnswer, created: int) -> Iterator[bytes]:
    """Yield an answer as server-sent events."""
    for number, (name, fields) in enumerate(_events(request, answer, created)):
        yield conversation.event({"type": name, "sequence_number": number, **fields}, name)


def _events(
    request: ConversationRequest, answer: ModelAnswer, created: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    started = _document(request, answer, created, "in_progress", [])
    yield "response.created", {"response": started}
    yield "response.in_progress", {"response": started}
    items = _items(answer)
    for index, item in enumerate(items):
        at = {"output_index": index}
        empty: Body = {"content": []} if item["type"] == "message" else {"arguments": ""}
        start = {**item, "status": "in_progress", **empty}
        yield "response.output_item.added", {**at, "item": start}
        parts = _message_events if item["type"] == "message" else _call_events
        for name, fields in parts(answer, item):
            yield name, {**at, "item_id": item["id"], **fields}
        yield "response.output_item.done", {**at, "item": item}
    done = _document(request, answer, created, "completed", items)
    yield "response.completed", {"response": done}


def _message_events(answer: ModelAnswer, item: Body) -> Iterator[tuple[str, dict[str, Any]]]:
    at, part = {"content_index": 0}, item["content"][0]
    yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
    for piece in answer.pieces():
        yield "response.output_text.delta", {**at, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**at, "text": answer.text, "logprobs": []}
    yield "response.content_part.done", {**at, "part": part}


def _call_events(_answer: ModelAnswer, item: Body) -> Iterator[tuple[str, dict[str, Any]]]:
    arguments = item["arguments"]
    yield "response.function_call_arguments.delta", {"delta": arguments}
    done = {"name": item["name"], "arguments": arguments}
    yield "response.function_call_arguments.done", done


def _items(answer: ModelAnswer) -> list[dict[str, Any]]:
    calls = [
        {
            "type": "function_call",
            "id": f"fc_{call.id}",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.text(),
            "status": "completed",
        }
        for call in answer.calls
    ]
    if not answer.text and calls:
        return calls
    part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
    message = {"type": "message", "id": f"msg_{answer.number}", "role": "assistant"}
    return [{**message, "status": "completed", "content": [part]}, *calls]


def _document(
    request: ConversationRequest, answer: ModelAnswer, created: int, status: str, output: list[Any]
) -> dict[str, Any]:
    echoed = {name: request.body.get(name) or default for name, default in _ECHOED.items()}
    return {
        "id": f"resp_{answer.number}",
        "object": "response",
        "created_at": created,
        "status": status,
        "model": request.model,
        "output": output,
        "error": None,
        "incomplete_details": None,
        "usage": _usage(request, answer) if status == "completed" else None,
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
