"""A client of the model of a double, and what its tests send."""

from __future__ import annotations

import json
from typing import Any

import httpx

from agentdouble import Emulator

TOOL = {"name": "run_code", "parameters": {"type": "object"}}
CHAT = {"model": "m", "tools": [{"type": "function", "function": TOOL}]}
RESPONSES = {"model": "m", "tools": [{"type": "function", **TOOL}]}
GEMINI = {"tools": [{"functionDeclarations": [TOOL]}]}
USER = {"role": "user", "content": "What is 6 * 7?"}
CONTENT = {"role": "user", "parts": [{"text": "What is 6 * 7?"}]}
ARGUMENTS = {"code": "6*7"}
CALL = {"calls": [{"name": "run_code", "arguments": ARGUMENTS}]}


class Model:
    """A client of the model of a double, and of the routes that control it."""

    def __init__(self, double: Emulator) -> None:
        variables = double.environment("model")
        key = variables["OPENAI_API_KEY"]
        own = {"Authorization": f"Bearer {double.token}"}
        self.openai = httpx.Client(
            base_url=variables["OPENAI_BASE_URL"], headers={"Authorization": f"Bearer {key}"}
        )
        self.gemini = httpx.Client(
            base_url=variables["GOOGLE_GEMINI_BASE_URL"], headers={"x-goog-api-key": key}
        )
        self.admin = httpx.Client(base_url=f"{double.url}/_emulator", headers=own)

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *error: object) -> None:
        for client in (self.openai, self.gemini, self.admin):
            client.close()

    def script(self, *steps: dict[str, Any], **when: str) -> None:
        """Add a script."""
        answer = self.admin.post("/model", json={"when": when, "steps": [*steps]})
        assert 201 == answer.status_code, answer.text

    def chat(self, *messages: dict[str, Any], **fields: Any) -> httpx.Response:
        """Send a request in the form of chat completions."""
        body = {**CHAT, "messages": [*messages], **fields}
        return self.openai.post("/chat/completions", json=body)

    def respond(self, content: Any, **fields: Any) -> httpx.Response:
        """Send a request in the form of responses."""
        return self.openai.post("/responses", json={**RESPONSES, "input": content, **fields})

    def generate(
        self, *contents: dict[str, Any], method: str = "generateContent", **fields: Any
    ) -> httpx.Response:
        """Send a request in the form of generateContent."""
        path = f"/v1beta/models/gemini-pro:{method}"
        return self.gemini.post(path, json={**GEMINI, "contents": [*contents], **fields})


def events(response: httpx.Response) -> list[Any]:
    """Return the data of a stream's events."""
    assert response.headers["content-type"].startswith("text/event-stream"), response.text
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]
