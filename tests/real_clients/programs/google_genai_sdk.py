"""google-genai: a tool agent, a retrieval agent, and the fields that the client writes.

It asks the version of the API that is its default, and Vertex AI's paths.
"""

from __future__ import annotations

import ast
import inspect
import os
from collections.abc import Iterator
from typing import Any

import scripted_model
from google import genai
from google.auth.credentials import Credentials
from google.genai import models, types
from scripted_model import DOCUMENTS, QUESTION, SUM, add, prompt

PARENTS = {"parent_object": "", "to_object": "generationConfig."}  # of the client's converters


class Bearer(Credentials):
    """Credentials of Vertex AI with the double's key as the token."""

    def refresh(self, request: Any) -> None:
        """Keep the token."""


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome of each part."""
    scripted_model.use(facts)
    credentials = Bearer()
    credentials.token = os.environ["GEMINI_API_KEY"]
    clients = {
        "generateContent": genai.Client(),
        "v1beta": genai.Client(http_options={"api_version": "v1beta"}),
        "Vertex AI": genai.Client(
            vertexai=True,
            project="p",
            location="us-central1",
            credentials=credentials,
            http_options={"base_url": os.environ["GOOGLE_GEMINI_BASE_URL"]},
        ),
    }
    return {
        "tool agent": {name: ask(client) for name, client in clients.items()},
        "retrieval agent": {name: retrieve(client) for name, client in clients.items()},
        "fields of Gemini": known_fields(),
    }


def ask(client: genai.Client) -> str | None:
    """Let the client call the tool itself, whole and as a stream."""
    config = types.GenerateContentConfig(tools=[add])
    whole = client.chats.create(model="gemini-2.5-flash", config=config).send_message(SUM).text
    stream = client.chats.create(model="gemini-2.5-flash", config=config)
    pieces = [chunk.text or "" for chunk in stream.send_message_stream(SUM)]
    return whole if whole == "".join(pieces) else f"{whole}, but streamed {pieces}"


def retrieve(client: genai.Client) -> str | None:
    """Find the document that is nearest to the question, and ask with it."""
    found = client.models.embed_content(
        model="gemini-embedding-001",
        contents=[QUESTION, *DOCUMENTS],
        config={"output_dimensionality": 256, "task_type": "SEMANTIC_SIMILARITY"},
    )
    question, *documents = (item.values or [] for item in found.embeddings or [])
    text = prompt(scripted_model.nearest(question, documents))
    return client.models.generate_content(model="gemini-2.5-flash", contents=text).text


def known_fields() -> dict[str, list[str]]:
    """Return the fields of requests as they are on the wire."""
    calling = "toolConfig.functionCallingConfig"
    return {
        "generateContent": sorted(
            {
                *_written("_GenerateContentConfig_to_", PARENTS),
                *_aliases(types.GenerationConfig, "generationConfig."),
                *_aliases(types.ToolConfig, "toolConfig."),
                *_aliases(types.FunctionCallingConfig, f"{calling}."),
            }
        ),
        "parts": sorted(_aliases(types.Part, "")),
        "embedContent": sorted(
            {
                name
                for name in _written("_EmbedContentConfig_to_", {"parent_object": ""})
                if not name.startswith(("instances[]", "parameters"))  # predict has these
            }
        ),
    }


def _aliases(kind: Any, parent: str) -> Iterator[str]:
    for name, field in kind.model_fields.items():
        yield f"{parent}{field.alias or name}"


def _written(converter: str, parents: dict[str, str]) -> Iterator[str]:
    """Yield the paths that the client's converters for both of Google's endpoints write."""
    for endpoint in ("mldev", "vertex"):
        source = inspect.getsource(getattr(models, f"{converter}{endpoint}"))
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setv":
                place, path = node.args[:2]
                if isinstance(place, ast.Name) and place.id in parents:
                    names = ".".join(ast.literal_eval(path))
                    yield f"{parents[place.id]}{names.removeprefix('requests[].')}"
