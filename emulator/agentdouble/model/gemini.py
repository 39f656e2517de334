"""The wire form of Gemini: ``POST /v1beta/models/{model}:generateContent`` and its stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agentdouble.errors import ModelError
from agentdouble.model import conversation, embeddings, fields, gemini_fields
from agentdouble.model.conversation import (
    Body,
    ConversationRequest,
    ModelAnswer,
    ModelTurn,
    ToolCall,
)

GENERATE, STREAM = "generateContent", "streamGenerateContent"
COUNT = "countTokens"
METHODS = (GENERATE, STREAM, COUNT, *embeddings.METHODS)
_FORM = "generateContent"
_WRAPPERS = (  # of google-genai and google-adk, Gemini's documentation, pydantic-ai, and litellm
    *("result", "output", "return_value", "content"),
)
_LIMIT = 1_048_576  # tokens, as the vendor's own models describe themselves


def read(body: Body, model: str, *, stream: bool) -> ConversationRequest:
    """Return the request in a body. Raise ModelError for one that is malformed."""
    fields.GENERATE_CONTENT.check(body)
    contents = conversation.objects(conversation.field(body, "contents", list, ""), "contents")
    turns = [turn for i, content in enumerate(contents) for turn in _turns(content, i)]
    instruction = fields.get(body, "systemInstruction") or {}
    if not isinstance(instruction, dict):
        raise ModelError(f"systemInstruction must be an object, not {instruction!r:.80}.")
    system = conversation.texts(instruction.get("parts"), "systemInstruction.parts")
    tools = gemini_fields.declared(body)
    return ConversationRequest(
        form=_FORM,
        model=model,
        turns=(*([ModelTurn("system", system)] if system else ()), *turns),
        tools=tools,
        stream=stream,
        body=body,
        demands=gemini_fields.demands(body, tools),
    )


def _turns(content: Body, index: int) -> Iterator[ModelTurn]:
    """Yield the results of tools in a content, then its text and its calls, if it has any."""
    where = f"contents[{index}].parts"
    parts = conversation.objects(content.get("parts"), where)
    for number, part in enumerate(parts):
        unknown = [name for name in part if fields.camel(name) not in fields.PARTS[_FORM]]
        if unknown:
            raise fields.unknown_name(unknown[0], f"{where}[{number}]")
    calls = [call for part in parts if (call := fields.get(part, "functionCall")) is not None]
    for part in parts:
        result = fields.get(part, "functionResponse")
        if result is not None:
            result = conversation.field(
                {"functionResponse": result}, "functionResponse", dict, where
            )
            name = conversation.field(result, "name", str, f"{where}.functionResponse")
            text = _result(result.get("response"))
            yield ModelTurn("tool", text, name=name, call_id=str(result.get("id") or ""))
    text = conversation.texts(parts, where)
    if text or calls or not parts:
        role = "assistant" if content.get("role") == "model" else "user"
        yield ModelTurn(role, text, tuple(_call(call, where) for call in calls))


def _result(response: Any) -> str:
    """Return a result as text; the SDKs put what is no object into one field."""
    if isinstance(response, dict) and len(response) == 1:
        ((name, value),) = response.items()
        response = value if name in _WRAPPERS else response
    return response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)


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
    whole = fields.get(body, "generateContentRequest") or body
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
    size, number = conversation.request_size(request), answer.tokens()
    content = {"role": "model", "parts": parts or [{"text": ""}]}
    candidate: dict[str, Any] = {"content": content, "index": 0}
    if last:
        candidate["finishReason"] = "MAX_TOKENS" if answer.is_cut else "STOP"
    if request.demands.logprobs is not None:
        candidate |= _probabilities("".join(part.get("text", "") for part in parts), request)
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": size,
            "candidatesTokenCount": number,
            "totalTokenCount": size + number,
        },
        "modelVersion": request.model,
        "responseId": f"response-{answer.number}",
    }


def _probabilities(text: str, request: ConversationRequest) -> dict[str, Any]:
    """Return the logarithms of the probabilities of words; each is sure, as a script is."""
    words = [{"token": word, "logProbability": 0.0} for word in conversation.words(text)]
    most = request.demands.logprobs
    likely = [{"candidates": [word]} for word in words] if most else []
    return {
        "avgLogprobs": 0.0,
        "logprobsResult": {"chosenCandidates": words, "topCandidates": likely},
    }
