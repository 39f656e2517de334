"""The wire form of OpenAI's chat completions: ``POST /v1/chat/completions``."""

from __future__ import annotations

import dataclasses
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

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_MOST_STOPS = 4


def read(body: Body) -> ConversationRequest:
    """Return the request in a body. Raise ModelError for one that is malformed."""
    fields.CHAT_COMPLETIONS.check(body)
    messages = conversation.objects(conversation.field(body, "messages", list, ""), "messages")
    turns = (_turn(message, f"messages[{i}]") for i, message in enumerate(messages))
    tools = openai_fields.named_tools(body, fields.TOOLS["chat completions"], is_nested=True)
    stream = conversation.flag(body, "stream")
    if body.get("stream_options") is not None and not stream:
        raise ModelError("stream_options needs stream true.", param="stream_options")
    return ConversationRequest(
        form="chat completions",
        model=conversation.field(body, "model", str, ""),
        turns=tuple(conversation.named_results(turns)),
        tools=tuple(tools),
        stream=stream,
        body=body,
        demands=openai_fields.demands(
            body,
            tools,
            is_nested=True,
            limit=_limit(body),
            output=openai_fields.output_format(
                body.get("response_format"), "response_format", is_nested=True
            ),
            stop=conversation.strings(body.get("stop"), _MOST_STOPS, "stop"),
            logprobs=_logprobs(body),
        ),
        custom_tools=tuple(name for name, kind in tools.items() if kind == "custom"),
    )


def _limit(body: Body) -> int | None:
    limits = [conversation.integer(body, n, 1) for n in ("max_completion_tokens", "max_tokens")]
    if None not in limits:
        raise ModelError(
            "max_tokens and max_completion_tokens exclude each other: use the latter.",
            param="max_tokens",
        )
    return limits[0] if limits[1] is None else limits[1]


def _logprobs(body: Body) -> int | None:
    most = conversation.integer(body, "top_logprobs", 0, openai_fields.MOST_LIKELY)
    if conversation.flag(body, "logprobs"):
        return most or 0
    if most is not None:
        raise ModelError("top_logprobs needs logprobs true.", param="top_logprobs")
    return None


def _turn(message: Body, where: str) -> ModelTurn:
    role = conversation.field(message, "role", str, where)
    if role not in _ROLES:
        raise ModelError(f"{where}.role must be one of {', '.join(_ROLES)}, not {role!r:.80}.")
    content, place = message.get("content"), f"{where}.content"
    if content is None and role != "assistant":
        raise ModelError(f"{place} must be a string or a list of parts, not None.", param=place)
    calls = conversation.objects(message.get("tool_calls"), f"{where}.tool_calls")
    return ModelTurn(
        _ROLES[role],
        conversation.texts(content, place, fields.PARTS["chat completions"]),
        tuple(_call(call, f"{where}.tool_calls[{i}]") for i, call in enumerate(calls)),
        call_id=conversation.field(message, "tool_call_id", str, where) if role == "tool" else "",
    )


def _call(call: Body, where: str) -> ToolCall:
    kind, argument = ("custom", "input") if "custom" in call else ("function", "arguments")
    inner, place = conversation.field(call, kind, dict, where), f"{where}.{kind}"
    return ToolCall(
        conversation.field(inner, "name", str, place),
        conversation.field(inner, argument, str, place),
        conversation.field(call, "id", str, where),
        kind == "custom",
    )


def model(name: str) -> dict[str, Any]:
    """Return the description of a model."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "agentdouble"}


def whole(request: ConversationRequest, answer: ModelAnswer, created: int) -> dict[str, Any]:
    """Return an answer as one document."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
    if answer.calls:
        message["tool_calls"] = [_written(call) for call in answer.calls]
    choice = {
        "message": message,
        "finish_reason": _reason(answer),
        "logprobs": _probabilities(request, answer.pieces()),
    }
    document = _document(request, answer, created, "chat.completion", [{"index": 0, **choice}])
    return {**document, "usage": _usage(request, answer)}


def stream(request: ConversationRequest, answer: ModelAnswer, created: int) -> Iterator[bytes]:
    """Yield an answer as server-sent events."""
    options = request.body.get("stream_options") or {}
    has_usage = options.get("include_usage")
    none_yet: Body = {"usage": None} if has_usage else {}

    def chunk(delta: Body, reason: str | None = None, pieces: Sequence[str] = ()) -> bytes:
        logprobs = _probabilities(request, pieces) if pieces else None
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        document = _document(request, answer, created, "chat.completion.chunk", [choice])
        return conversation.event({**document, **none_yet})

    yield chunk({"role": "assistant", "content": "" if answer.text else None})
    for piece in answer.pieces():
        yield chunk({"content": piece}, pieces=[piece])
    for index, call in enumerate(answer.calls):
        empty = dataclasses.replace(call, arguments="")
        yield chunk({"tool_calls": [{"index": index, **_written(empty)}]})
        kind, argument = _names(call)
        yield chunk({"tool_calls": [{"index": index, kind: {argument: call.text()}}]})
    yield chunk({}, _reason(answer))
    if has_usage:
        last = _document(request, answer, created, "chat.completion.chunk", [])
        yield conversation.event({**last, "usage": _usage(request, answer)})
    yield b"data: [DONE]\n\n"


def _probabilities(request: ConversationRequest, pieces: Sequence[str]) -> dict[str, Any] | None:
    most = request.demands.logprobs
    if most is None:
        return None
    return {"content": [openai_fields.token(piece, most) for piece in pieces], "refusal": None}


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
    kind, argument = _names(call)
    return {"id": call.id, "type": kind, kind: {"name": call.name, argument: call.text()}}


def _names(call: ToolCall) -> tuple[str, str]:
    """Return the names of a call's kind, and of the field with its arguments."""
    return ("custom", "input") if call.is_custom else ("function", "arguments")


def _reason(answer: ModelAnswer) -> str:
    return "length" if answer.is_cut else "tool_calls" if answer.calls else "stop"


def _usage(request: ConversationRequest, answer: ModelAnswer) -> dict[str, int]:
    size, words = conversation.request_size(request), answer.tokens()
    return {"prompt_tokens": size, "completion_tokens": words, "total_tokens": size + words}
