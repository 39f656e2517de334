"""The wire form of OpenAI's chat completions: ``POST /v1/chat/completions``."""

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

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_REFUSED = {
    "n": "a script has one answer for each request.",
    "audio": "a script has only text and calls of tools.",
    "functions": "use tools, which replaced it.",
}


def read(body: Body) -> ConversationRequest:
    """Return the request in a body. Raise ModelError for one that is malformed."""
    conversation.refuse_fields(body, _REFUSED)
    messages = conversation.objects(conversation.field(body, "messages", list, ""), "messages")
    turns = (_turn(message, f"messages[{i}]") for i, message in enumerate(messages))
    tools = [
        tool["function"]
        for tool in conversation.objects(body.get("tools"), "tools")
        if "function" in tool
    ]
    return ConversationRequest(
        form="chat completions",
        model=conversation.field(body, "model", str, ""),
        turns=tuple(conversation.named_results(turns)),
        tools=tuple(conversation.field(tool, "name", str, "tools.function") for tool in tools),
        stream=body.get("stream") is True,
        body=body,
    )


def _turn(message: Body, where: str) -> ModelTurn:
    role = conversation.field(message, "role", str, where)
    if role not in _ROLES:
        raise ModelError(f"{where}.role must be one of {', '.join(_ROLES)}, not {role!r:.80}.")
    calls = conversation.objects(message.get("tool_calls"), f"{where}.tool_calls")
    return ModelTurn(
        _ROLES[role],
        conversation.texts(message.get("content"), f"{where}.content"),
        tuple(_call(call, f"{where}.tool_calls[{i}]") for i, call in enumerate(calls)),
        call_id=conversation.field(message, "tool_call_id", str, where) if role == "tool" else "",
    )


def _call(call: Body, where: str) -> ToolCall:
    function, place = conversation.field(call, "function", dict, where), f"{where}.function"
    return ToolCall(
        conversation.field(function, "name", str, place),
        conversation.field(function, "arguments", str, place),
        conversation.field(call, "id", str, where),
    )


def model(name: str) -> dict[str, Any]:
    """Return the description of a model."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "agentdouble"}


def whole(request: ConversationRequest, answer: ModelAnswer, created: int) -> dict[str, Any]:
    """Return an answer as one document."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
    if answer.calls:
        message["tool_calls"] = [_written(call) for call in answer.calls]
    choice = {"message": message, "finish_reason": _reason(answer), "logprobs": None}
    document = _document(request, answer, created, "chat.completion", [{"index": 0, **choice}])
    return {**document, "usage": _usage(request, answer)}


def stream(request: ConversationRequest, answer: ModelAnswer, created: int) -> Iterator[bytes]:
    """Yield an answer as server-sent events."""

    def chunk(delta: Body, reason: str | None = None) -> bytes:
        choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]
        return conversation.event(
            _document(request, answer, created, "chat.completion.chunk", choices)
        )

    yield chunk({"role": "assistant", "content": "" if answer.text else None})
    for piece in answer.pieces():
        yield chunk({"content": piece})
    for index, call in enumerate(answer.calls):
        start = {"index": index, **_written(ToolCall(call.name, "", call.id))}
        yield chunk({"tool_calls": [start]})
        yield chunk({"tool_calls": [{"index": index, "function": {"arguments": call.text()}}]})
    yield chunk({}, _reason(answer))
    options = request.body.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        last = _document(request, answer, created, "chat.completion.chunk", [])
        yield conversation.event({**last, "usage": _usage(request, answer)})
    yield b"data: [DONE]\n\n"


def _document(
    request: ConversationRequest, answer: ModelAnswer, created: int, kind: str, choices: list[Any]
) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{answer.number}",
        "object": kind,
        "created": created,
        "model": request.model,
        "choices": choices,
    }


def _written(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.text()}
    return {"id": call.id, "type": "function", "function": function}


def _reason(answer: ModelAnswer) -> str:
    return "tool_calls" if answer.calls else "stop"


def _usage(request: ConversationRequest, answer: ModelAnswer) -> dict[str, int]:
    size, words = conversation.request_size(request), answer.tokens()
    return {"prompt_tokens": size, "completion_tokens": words, "total_tokens": size + words}
