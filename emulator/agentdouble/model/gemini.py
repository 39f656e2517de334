"""The wire form of Gemini: ``POST /v1beta/models/{model}:generateContent`` and its stream."""

from __future__ import annotations

import json
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

GENERATE, STREAM = "generateContent", "streamGenerateContent"
COUNT = "countTokens"
METHODS = (GENERATE, STREAM, COUNT)
_LIMIT = 1_048_576  # tokens, as the vendor's own models describe themselves


def read(body: Body, model: str, *, stream: bool) -> ConversationRequest:
    """Return the request in a body. Raise ModelError for one that is malformed."""
    contents = conversation.objects(conversation.field(body, "contents", list, ""), "contents")
    turns = [turn for i, content in enumerate(contents) for turn in _turns(content, i)]
    instruction = body.get("systemInstruction") or body.get("system_instruction") or {}
    system = conversation.texts(instruction.get("parts"), "systemInstruction.parts")
    declared = [
        function
        for tool in conversation.objects(body.get("tools"), "tools")
        for function in conversation.objects(
            tool.get("functionDeclarations") or tool.get("function_declarations"), "tools"
        )
    ]
    return ConversationRequest(
        form="generateContent",
        model=model,
        turns=(*([ModelTurn("system", system)] if system else ()), *turns),
        tools=tuple(conversation.field(function, "name", str, "tools") for function in declared),
        stream=stream,
        body=body,
    )


def _turns(content: Body, index: int) -> Iterator[ModelTurn]:
    """Yield the results of tools in a content, then its text and its calls, if it has any."""
    where = f"contents[{index}].parts"
    parts = conversation.objects(content.get("parts"), where)
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    for part in parts:
        if "functionResponse" in part:
            result = conversation.field(part, "functionResponse", dict, where)
            name = conversation.field(result, "name", str, f"{where}.functionResponse")
            text = _result(result.get("response"))
            yield ModelTurn("tool", text, name=name, call_id=str(result.get("id") or ""))
    text = conversation.texts(parts, where)
    if text or calls or not parts:
        role = "assistant" if content.get("role") == "model" else "user"
        yield ModelTurn(role, text, tuple(_call(call, where) for call in calls))


def _result(response: Any) -> str:
    """Return a result as text; the SDKs put a text into ``result`` or ``output``."""
    if isinstance(response, dict) and len(response) == 1:
        value = response.get("result", response.get("output"))
        if isinstance(value, str):
            return value
    return json.dumps(response, ensure_ascii=False)


def _call(call: Any, where: str) -> ToolCall:
    place = f"{where}.functionCall"
    if not isinstance(call, dict):
        raise ModelError(f"{place} must be an object, not {call!r:.80}.")
    return ToolCall(
        conversation.field(call, "name", str, place),
        call.get("args") or {},
        str(call.get("id") or ""),
    )


def model(name: str) -> dict[str, Any]:
    """Return the description of a model; ``name`` may have the prefix ``models/``."""
    return {
        "name": f"models/{name.removeprefix('models/')}",
        "displayName": name,
        "version": "1",
        "inputTokenLimit": _LIMIT,
        "outputTokenLimit": _LIMIT,
        "supportedGenerationMethods": list(METHODS),
    }


def tokens(body: Body, name: str) -> dict[str, Any]:
    """Return the number of words in the ``contents`` or ``generateContentRequest`` of a body."""
    whole = body.get("generateContentRequest") or body.get("generate_content_request") or body
    return {"totalTokens": conversation.request_size(read(whole, name, stream=False))}


def whole(request: ConversationRequest, answer: ModelAnswer) -> dict[str, Any]:
    """Return an answer as one document."""
    text = [{"text": answer.text}] if answer.text or not answer.calls else []
    return _document(request, answer, [*text, *_calls(answer)], last=True)


def stream(request: ConversationRequest, answer: ModelAnswer, *, events: bool) -> Iterator[bytes]:
    """Yield an answer in pieces: as server-sent events, or as the items of a JSON array."""
    parts = [[{"text": piece}] for piece in answer.pieces()]
    if answer.calls or not parts:
        parts.append(_calls(answer))
    for index, part in enumerate(parts):
        document = _document(request, answer, part, last=index == len(parts) - 1)
        if events:
            yield conversation.event(document)
        else:
            yield (b",\n" if index else b"[") + json.dumps(document).encode()
    if not events:
        yield b"]"


def _calls(answer: ModelAnswer) -> list[dict[str, Any]]:
    for call in answer.calls:
        if isinstance(call.arguments, str):
            raise ModelError(
                f"The script calls {call.name} with the text {call.arguments!r:.80} as arguments. "
                "In Gemini's wire form arguments are an object: script them as fields."
            )
    return [
        {"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}}
        for call in answer.calls
    ]


def _document(
    request: ConversationRequest, answer: ModelAnswer, parts: list[Any], *, last: bool
) -> dict[str, Any]:
    size, words = conversation.request_size(request), answer.tokens()
    content = {"role": "model", "parts": parts or [{"text": ""}]}
    return {
        "candidates": [
            {"content": content, "index": 0, **({"finishReason": "STOP"} if last else {})}
        ],
        "usageMetadata": {
            "promptTokenCount": size,
            "candidatesTokenCount": words,
            "totalTokenCount": size + words,
        },
        "modelVersion": request.model,
        "responseId": f"response-{answer.number}",
    }
