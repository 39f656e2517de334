"""openai's own client: a tool agent, a retrieval agent, and the fields that the client knows."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator
from typing import Any

import openai
import scripted_model
from openai.types import embedding_create_params
from openai.types.chat import (
    chat_completion_content_part_param,
    chat_completion_content_part_refusal_param,
    chat_completion_stream_options_param,
    completion_create_params,
)
from openai.types.responses import (
    response_create_params,
    response_includable,
    response_input_param,
    response_text_config_param,
)
from scripted_model import DOCUMENTS, QUESTION, SUM, prompt

PARAMETERS = {"type": "object", "properties": {n: {"type": "integer"} for n in "ab"}}
TOOL = {"name": "add", "parameters": PARAMETERS}


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome of each part."""
    scripted_model.use(facts)
    client = openai.OpenAI()
    return {
        "tool agent": {
            "chat completions": chat_agent(client),
            "responses": responses_agent(client, keeps=False),
            "responses, kept": responses_agent(client, keeps=True),
        },
        "retrieval agent": {
            "chat completions": retrieve(client, {}),
            "dimensions": retrieve(client, {"dimensions": 256}),
        },
        "responses": kept_responses(client),
        "fields of OpenAI": known_fields(),
    }


def chat_agent(client: openai.OpenAI) -> str | None:
    """Let the model call the tool until it says something, as a stream."""
    messages: list[Any] = [{"role": "user", "content": SUM}]
    tools: Any = [{"type": "function", "function": TOOL}]
    while True:
        with client.chat.completions.stream(model="m", messages=messages, tools=tools) as stream:
            message = stream.get_final_completion().choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message)
        for call in message.tool_calls:
            result = scripted_model.add(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": str(result)})


def responses_agent(client: openai.OpenAI, *, keeps: bool) -> str:
    """Do the same with responses: send the whole conversation, or name the previous response."""
    tools: Any = [{"type": "function", "strict": False, **TOOL}]
    items: list[Any] = [{"role": "user", "content": SUM}]
    previous: Any = openai.NOT_GIVEN
    while True:
        response = client.responses.create(
            model="m", input=items, tools=tools, store=keeps, previous_response_id=previous
        )
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        if keeps:
            items, previous = [], response.id
        else:
            items += response.output
        for call in calls:
            result = str(scripted_model.add(**json.loads(call.arguments)))
            items.append(
                {"type": "function_call_output", "call_id": call.call_id, "output": result}
            )


def retrieve(client: openai.OpenAI, options: Any) -> str | None:
    """Find the document that is nearest to the question, and ask with it."""
    model = "text-embedding-3-small"
    found = client.embeddings.create(model=model, input=[QUESTION, *DOCUMENTS], **options)
    question, *documents = (item.embedding for item in found.data)
    text = prompt(scripted_model.nearest(question, documents))
    answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
    return answer.choices[0].message.content


def kept_responses(client: openai.OpenAI) -> dict[str, Any]:
    """Fetch, list and delete what is kept."""
    text = prompt(DOCUMENTS[1])
    response = client.responses.create(model="m", input=text)
    queued = client.responses.create(model="m", input=text, background=True)
    outcome = {
        "fetched": client.responses.retrieve(response.id).output_text,
        "input": len([*client.responses.input_items.list(response.id)]),
        "background": [queued.status, client.responses.retrieve(queued.id).status],
    }
    client.responses.delete(response.id)
    try:
        client.responses.retrieve(response.id)
    except openai.NotFoundError:
        outcome["deleted"] = True
    return outcome


def known_fields() -> dict[str, list[str]]:
    """Return the fields of the client's types, with those inside of some as ``outer.inner``."""
    stream_options = chat_completion_stream_options_param.ChatCompletionStreamOptionsParam
    text = response_text_config_param.ResponseTextConfigParam
    items = typing.get_args(response_input_param.ResponseInputItemParam)
    parts = (
        *typing.get_args(chat_completion_content_part_param.ChatCompletionContentPartParam),
        chat_completion_content_part_refusal_param.ChatCompletionContentPartRefusalParam,
    )
    return {
        "chat completions": sorted(
            {
                *_names(completion_create_params.CompletionCreateParamsStreaming),
                *_names(stream_options, "stream_options."),
            }
        ),
        "responses": sorted(
            {
                *_names(response_create_params.ResponseCreateParamsStreaming),
                *_names(response_create_params.StreamOptions, "stream_options."),
                *_names(text, "text."),
            }
        ),
        "embeddings": sorted(_names(embedding_create_params.EmbeddingCreateParams)),
        "include": sorted(typing.get_args(response_includable.ResponseIncludable)),
        "parts": sorted({name for part in parts for name in _kinds(part)}),
        "items": sorted({name for item in items for name in _kinds(item)}),
    }


def _names(kind: Any, parent: str = "") -> Iterator[str]:
    return (f"{parent}{name}" for name in typing.get_type_hints(kind))


def _kinds(item: Any) -> Iterator[str]:
    """Yield the values that the field ``type`` of an item may have."""
    pending = [typing.get_type_hints(item).get("type")]
    while pending:
        hint = pending.pop()
        if isinstance(hint, str):
            yield hint
        pending += typing.get_args(hint)
