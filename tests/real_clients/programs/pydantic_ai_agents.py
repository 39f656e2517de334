"""Agents of pydantic-ai, with the models of OpenAI and Google, and its embedder."""

from __future__ import annotations

from typing import Any

import scripted_model
from pydantic_ai import Agent, Embedder
from scripted_model import DOCUMENTS, QUESTION, SUM, add, prompt

MODELS = {
    "chat completions": "openai-chat:gpt-4o",
    "responses": "openai-responses:gpt-4o",
    "generateContent": "google:gemini-2.5-flash",
}
EMBEDDERS = {
    "chat completions": "openai:text-embedding-3-small",
    "generateContent": "google:gemini-embedding-001",
}


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome of each part."""
    scripted_model.use(facts)
    tools: dict[str, str] = {}
    for name, model in MODELS.items():
        tools[name] = (await Agent(model, tools=[add]).run(SUM)).output
    retrieval = {name: await retrieve(MODELS[name], model) for name, model in EMBEDDERS.items()}
    return {"tool agent": tools, "retrieval agent": retrieval}


async def retrieve(model: str, embedder: str) -> str:
    """Find the document that is nearest to the question, and ask with it."""
    embed = Embedder(embedder)
    documents = (await embed.embed_documents(DOCUMENTS)).embeddings
    question = (await embed.embed_query(QUESTION)).embeddings[0]
    found = scripted_model.nearest(question, documents)
    return (await Agent(model).run(prompt(found))).output
