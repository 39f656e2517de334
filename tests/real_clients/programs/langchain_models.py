"""LangChain's agents and vector stores, with the models of OpenAI and Google."""

from __future__ import annotations

from typing import Any

import scripted_model
from langchain.agents import create_agent
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_google_genai import GoogleGenerativeAIEmbeddings
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from scripted_model import DOCUMENTS, QUESTION, SUM, add, prompt


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome of each part."""
    scripted_model.use(facts)
    # by default it counts tokens with a file from the network
    openai = OpenAIEmbeddings(check_embedding_ctx_length=False)
    google = GoogleGenerativeAIEmbeddings(model="gemini-embedding-001")
    models = {
        "chat completions": ChatOpenAI(model="gpt-4o"),
        "responses": ChatOpenAI(model="gpt-4o", use_responses_api=True),
        "responses, kept": ChatOpenAI(
            model="gpt-4o", use_responses_api=True, use_previous_response_id=True
        ),
        "generateContent": "google_genai:gemini-2.5-flash",
    }
    return {
        "tool agent": {name: await ask(model, SUM, [add]) for name, model in models.items()},
        "retrieval agent": {
            "chat completions": await retrieve(models["chat completions"], openai),
            "generateContent": await retrieve(models["generateContent"], google),
        },
    }


async def ask(model: Any, question: str, tools: list[Any]) -> str:
    """Return the last text of an agent."""
    agent = create_agent(model, tools=tools)
    answer = await agent.ainvoke({"messages": [("user", question)]})
    return str(answer["messages"][-1].text)


async def retrieve(model: Any, embeddings: Embeddings) -> str:
    """Find the document in a vector store, and ask with it."""
    store = InMemoryVectorStore(embeddings)
    await store.aadd_texts(DOCUMENTS)
    (document,) = await store.asimilarity_search(QUESTION, k=1)
    return await ask(model, prompt(document.page_content), [])
