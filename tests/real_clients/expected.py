"""The expected results of each part of a conversation; a client runs the parts it supports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentdouble.model import fields, responses_api
from agentdouble.model.fields import FieldTable

# Of A2A, over each binding
OUTCOME: Mapping[str, Any] = {
    "message": "You said: hello",
    "asked": ["input_required", "Which?"],
    "continued": [True, "completed", "Then this."],
    "failed": ["failed", "no luck"],
    "canceled": "canceled",
    "errors": ["TaskNotCancelableError", "TaskNotFoundError"],
    "listed": True,
    "config": ["mine", True],
    "configs": [1, 0],
    "streamed": ["submitted", "working", "artifact", "artifact", "completed"],
    "artifact": "one two",
    "resumed": ["artifact", "completed"],
}
PUSHED = ["submitted", "working", "artifactUpdate", "artifactUpdate", "completed"]

_LISTED = {
    "resources": ["test://static-text", "test://static-binary", "test://watched-resource"],
    "templates": ["template"],
    "read": '{"id": "7", "templateTest": true, "data": "Data for ID: 7"}',
    "prompts": 5,
    "prompt": "Prompt with arguments: arg1='a', arg2='b'",
    "completion": ["paris", "park", "party"],
}
_MCP = {
    "tools": ["add", "fail"],
    "call": "5",
    "failure": "not today",
    "runtime": "5",
    "front": "5",
    "error": "This tool intentionally returns an error for testing",
    "contents": ["text", "image", "resource"],
    "progress": [0, 50, 100],
    "logging": [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ],
    **_LISTED,
    "subscription": "test://watched-resource",
    "refusal": True,
}
_A2A_1 = {**OUTCOME, "pushed": PUSHED}
_A2A_0_3 = {**OUTCOME, "pushed": ["submitted", "working", "working", "working", "completed"]}

# Of the scripted model: the ways in which a client reaches it
_MODEL = (
    *("chat completions", "dimensions", "responses", "responses, kept", "stream"),
    *("generateContent", "v1beta", "Vertex AI", "Anthropic's messages"),
)


def _known(table: FieldTable, *, without: Iterable[str] = ()) -> list[str]:
    """Return the fields of a table that the vendor's client has, too."""
    return sorted(table.names - table.extensions - {*without})


PARTS: Mapping[str, Mapping[str, Any]] = {
    "tool agent": dict.fromkeys(_MODEL, "It is 5."),
    "retrieval agent": dict.fromkeys(_MODEL, "It is Paris."),
    "responses": {
        "fetched": "It is Paris.",
        "input": 1,
        "background": ["queued", "completed"],
        "deleted": True,
    },
    "fields of OpenAI": {
        "chat completions": _known(fields.CHAT_COMPLETIONS),
        "responses": _known(fields.RESPONSES),
        "embeddings": _known(fields.EMBEDDINGS),
        "include": sorted(responses_api.INCLUDABLE),
        "parts": sorted({*fields.PARTS["chat completions"]} - {"video_url"}),
        "items": sorted(responses_api.ITEMS),
    },
    "fields of Gemini": {
        # the client puts these elsewhere
        "generateContent": _known(
            fields.GENERATE_CONTENT, without=("contents", "generationConfig", "model")
        ),
        "parts": sorted(fields.PARTS["generateContent"]),
        "embedContent": _known(
            fields.EMBED_CONTENT, without=("content", "embedContentConfig", "model")
        ),
    },
    "with sessions": {
        **_MCP,
        "elicitation": (
            'User response: action=accept, content={"username": "ann", "email": "ann"}'
        ),
        "sampling": "LLM response: Paris",
    },
    "without sessions": {**_MCP, "elicitation": "Hello, ann!", "sampling": "Paris"},
    "1.0 JSONRPC": _A2A_1,
    "1.0 HTTP+JSON": _A2A_1,
    "0.3 JSONRPC": _A2A_0_3,
    "keys": {"runtime": "hello"},
    "RemoteA2aAgent": {
        "application": "You said: hello",
        "runtime": "hello",
        "failure": "no luck",
    },
    "kernels": {
        "specs": ["python3", "javascript"],
        "output": "42\n42",
        "error": "ZeroDivisionError",
        "input": "Hello, ann\n",
        "completion": ["print"],
        "comm": "there and back",
        "messages": True,
        "interrupted": "KeyboardInterrupt",
        "restarted": "False",
        "second": ["both\n", "both\n"],
        "left": False,
    },
    "McpToolset": {key: ["add", "fail"] for key in ("tools", "runtime", "front")},
}


def mistakes(part: str, outcome: Mapping[str, Any]) -> list[str]:
    """Return the mistakes in a part, one sentence each."""
    right = PARTS[part]
    return [
        f"{part}: {step} is {value!r} instead of {right.get(step)!r}"
        for step, value in outcome.items()
        if step not in right or value != right[step]
    ]
