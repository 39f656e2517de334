"""Embeddings in the wire forms of OpenAI, Gemini (embedContent) and Vertex AI (predict)."""

from __future__ import annotations

import base64
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentdouble.errors import ModelError
from agentdouble.model import conversation, fields, word_vectors
from agentdouble.model.conversation import Body

EMBED, EMBED_BATCH, PREDICT = "embedContent", "batchEmbedContents", "predict"
METHODS = (EMBED, EMBED_BATCH, PREDICT)
_SIZES = {"text-embedding-3-large": 3072}  # of the vendors' models
_OPENAI_SIZE, _GEMINI_SIZE = 1536, 3072
_LARGEST = 4096  # numbers
_MOST = 2048  # inputs, as OpenAI allows
_FORMATS = ("float", "base64")


@dataclass(frozen=True)
class _Embedded:
    """A vector, and the number of words that it is of."""

    numbers: array[float]
    words: int


def openai(body: Body) -> dict[str, Any]:
    """Return the answer to a request of OpenAI's form. Raise ModelError for a malformed one."""
    fields.EMBEDDINGS.check(body)
    model = conversation.field(body, "model", str, "")
    size = conversation.integer(body, "dimensions", 1, _LARGEST)
    form = body.get("encoding_format") or "float"
    if form not in _FORMATS:
        raise ModelError(
            f"encoding_format must be float or base64, not {form!r:.60}.", param="encoding_format"
        )
    size = size or _SIZES.get(model, _OPENAI_SIZE)
    embedded = [_embed(listed, size) for listed in _inputs(body.get("input"))]
    total = sum(one.words for one in embedded)
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": _written(one.numbers, form)}
            for index, one in enumerate(embedded)
        ],
        "model": model,
        "usage": {"prompt_tokens": total, "total_tokens": total},
    }


def _inputs(value: Any) -> list[list[str]]:
    """Return the words of each input: a text, or the ids of tokens, which stand for words."""
    items = [value] if isinstance(value, str) or _is_ids(value) else value
    if not isinstance(items, list) or not items:
        raise ModelError(
            f"input must be a text, a list of texts, or lists of token ids, not {value!r:.80}.",
            param="input",
        )
    if len(items) > _MOST:
        raise ModelError(f"input may have {_MOST} items, not {len(items)}.", param="input")
    return [_input(item, f"input[{index}]") for index, item in enumerate(items)]


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(item) is int for item in value)


def _input(item: Any, place: str) -> list[str]:
    if isinstance(item, str) and item:
        return word_vectors.words(item)
    if _is_ids(item):
        return [f"token {number}" for number in item]
    raise ModelError(
        f"{place} must be a text or a list of token ids, not {item!r:.80}.", param=place
    )


def _written(numbers: array[float], form: str) -> list[float] | str:
    if form == "float":
        return numbers.tolist()
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode()


def gemini(body: Body, method: str) -> dict[str, Any]:
    """Return the answer to a request of a method of Gemini's. Raise ModelError if malformed."""
    if method == PREDICT:
        return _predict(body)
    requests = (
        conversation.objects(body.get("requests"), "requests") if method == EMBED_BATCH else [body]
    )
    if method == EMBED_BATCH:
        fields.BATCH_EMBED_CONTENTS.check(body)
        if not requests:
            raise ModelError("requests must have an item.")
    embedded = [_of_content(request) for request in requests]
    usage = {"usageMetadata": {"promptTokenCount": sum(one.words for one in embedded)}}
    values = [{"values": one.numbers.tolist()} for one in embedded]
    return {**({"embedding": values[0]} if method == EMBED else {"embeddings": values}), **usage}


def _of_content(request: Body) -> _Embedded:
    fields.EMBED_CONTENT.check(request)
    config = fields.get(request, "embedContentConfig") or {}
    text = _text(conversation.field(request, "content", dict, ""))
    title = fields.get(request, "title") or fields.get(config, "title") or ""
    asked = fields.get(request, "outputDimensionality") or fields.get(
        config, "outputDimensionality"
    )
    return _of_text(f"{title} {text}", asked)


def _of_text(text: str, size: Any) -> _Embedded:
    if not text.strip():
        raise ModelError("The content to embed has no text.")
    size = conversation.integer({"outputDimensionality": size}, "outputDimensionality", 1, _LARGEST)
    return _embed(word_vectors.words(text), size or _GEMINI_SIZE)


def _text(content: Body) -> str:
    parts = conversation.objects(content.get("parts"), "content.parts")
    other = [name for part in parts for name in part if name != "text"]
    if other:
        raise ModelError(
            f"content.parts with {other[0]} is not supported: the double embeds only text.",
            code="unsupported_parameter",
        )
    return conversation.texts(parts, "content.parts")


def _predict(body: Body) -> dict[str, Any]:
    """Return the answer of Vertex AI's older models of embeddings."""
    fields.PREDICT.check(body)
    parameters = body.get("parameters") or {}
    predictions = []
    for index, instance in enumerate(conversation.objects(body.get("instances"), "instances")):
        fields.PREDICT_INSTANCE.check(instance)
        text = conversation.field(instance, "content", str, f"instances[{index}]")
        one = _of_text(
            f"{instance.get('title') or ''} {text}", fields.get(parameters, "outputDimensionality")
        )
        statistics = {"token_count": one.words, "truncated": False}
        embedding = {"values": one.numbers.tolist(), "statistics": statistics}
        predictions.append({"embeddings": embedding})
    return {"predictions": predictions}


def _embed(listed: Sequence[str], size: int) -> _Embedded:
    return _Embedded(word_vectors.vector(listed, size), len(listed))
