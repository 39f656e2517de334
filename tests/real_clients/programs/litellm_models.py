"""litellm: the models of OpenAI and Google, and Anthropic's messages on OpenAI's form."""

from __future__ import annotations

import json
from typing import Any

import litellm
import scripted_model
from scripted_model import DOCUMENTS, QUESTION, SUM, prompt

PARAMETERS = {"type": "object", "properties": {n: {"type": "integer"} for n in "ab"}}
TOOL = {"name": "add", "parameters": PARAMETERS}
MODELS = {"chat completions": "openai/gpt-4o", "generateContent": "gemini/gemini-2.5-flash"}
EMBEDDERS = {
    "chat completions": "openai/text-embedding-3-small",
    "generateContent": "gemini/gemini-embedding-001",
}


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome of each part."""
    scripted_model.use(facts)
    tools = {name: ask(model) for name, model in MODELS.items()}
    tools["Anthropic's messages"] = await messages()
    found = {name: retrieve(MODELS[name], EMBEDDERS[name]) for name in MODELS}
    return {"tool agent": tools, "retrieval agent": found}


def ask(model: str) -> str:
    """Let the model call the tool until it says something."""
    conversation: list[Any] = [{"role": "user", "content": SUM}]
    tools = [{"type": "function", "function": TOOL}]
    while True:
        answer: Any = litellm.completion(model, conversation, tools=tools)
        message = answer.choices[0].message
        if not message.tool_calls:
            return str(message.content)
        conversation.append(message)
        for call in message.tool_calls:
            result = scripted_model.add(**json.loads(call.function.arguments))
            conversation.append({"role": "tool", "tool_call_id": call.id, "content": str(result)})


async def messages() -> str:
    """Do the same in Anthropic's form, which litellm translates."""
    tools = [{"name": "add", "input_schema": PARAMETERS}]
    conversation: list[Any] = [{"role": "user", "content": SUM}]
    while True:
        answer: Any = await litellm.anthropic.messages.acreate(
            model="openai/gpt-4o", max_tokens=100, messages=conversation, tools=tools
        )
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        if not calls:
            return str(answer["content"][0]["text"])
        conversation.append({"role": "assistant", "content": answer["content"]})
        results = [
            {
                "type": "tool_result",
                "tool_use_id": call["id"],
                "content": str(scripted_model.add(**call["input"])),
            }
            for call in calls
        ]
        conversation.append({"role": "user", "content": results})


def retrieve(model: str, embedder: str) -> str:
    """Find the document that is nearest to the question, and ask with it."""
    found: Any = litellm.embedding(embedder, input=[QUESTION, *DOCUMENTS])
    question, *documents = (item["embedding"] for item in found.data)
    text = prompt(scripted_model.nearest(question, documents))
    answer: Any = litellm.completion(model, [{"role": "user", "content": text}])
    return str(answer.choices[0].message.content)
