"""google-adk: RemoteA2aAgent, the tools of MCP servers, and agents of the scripted model."""

from __future__ import annotations

from typing import Any

import httpx
import scripted_model
from a2a.client import ClientConfig, ClientFactory
from google.adk.agents import LlmAgent
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool.mcp_session_manager import StreamableHTTPConnectionParams
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from google.genai import Client, types
from scripted_model import DOCUMENTS, QUESTION, SUM, add, prompt

CARD = "/.well-known/agent-card.json"


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Hold the whole conversation; return the outcome of each part."""
    servers = facts["a2a"]
    runtime = servers["runtime"]
    agent = {
        "application": await ask(servers["application"], "hello"),
        "runtime": await ask(runtime, "hello"),
        "failure": await ask(servers["application"], "fail"),
    }
    return {
        "RemoteA2aAgent": agent,
        "McpToolset": await use_tools(facts["mcp"]),
        **await use_model(facts),
    }


async def use_model(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the outcomes of agents of the scripted model."""
    scripted_model.use(facts)
    client = Client()  # it closes its connections with its last reference
    found = client.models.embed_content(
        model="gemini-embedding-001", contents=[QUESTION, *DOCUMENTS]
    )
    question, *documents = (item.values or [] for item in found.embeddings or [])
    text = prompt(scripted_model.nearest(question, documents))
    return {
        "tool agent": {"generateContent": await run(_llm(add), SUM)},
        "retrieval agent": {"generateContent": await run(_llm(), text)},
    }


def _llm(*tools: Any) -> LlmAgent:
    return LlmAgent(name="a", model="gemini-2.5-flash", instruction="Help.", tools=[*tools])


async def ask(server: dict[str, Any], text: str) -> str:
    """Return the answer of an agent that forwards a message."""
    async with httpx.AsyncClient(headers=server["headers"], timeout=60, trust_env=False) as http:
        factory = ClientFactory(ClientConfig(httpx_client=http))
        url = server["url"] + CARD
        agent = RemoteA2aAgent(name="remote", agent_card=url, a2a_client_factory=factory)
        return await run(agent, text)


async def run(agent: Any, text: str) -> str:
    """Return the texts of an agent's events."""
    runner = InMemoryRunner(agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="ann")
    message = types.Content(role="user", parts=[types.Part(text=text)])
    stream = runner.run_async(user_id="ann", session_id=session.id, new_message=message)
    events = [event async for event in stream]
    return " ".join(filter(None, map(text_of, events)))


def text_of(event: Any) -> str:
    """Return the text or the error of an event."""
    if event.error_message:
        return next(
            (expected for expected in ("same origin", "401") if expected in event.error_message),
            event.error_message,
        )
    parts = event.content.parts if event.content else []
    return "".join(part.text or "" for part in parts)


async def use_tools(servers: dict[str, Any]) -> dict[str, Any]:
    """Return the results of the tools of MCP servers."""
    return {
        "tools": sorted(await tools_of(servers["application"])),
        "runtime": sorted(await tools_of(servers["runtime"])),
        "front": sorted(await tools_of(servers["front"])),
    }


async def tools_of(server: dict[str, Any]) -> list[str]:
    """Return the names of a server's tools."""
    params = StreamableHTTPConnectionParams(
        url=server["url"], headers=server["headers"], timeout=60
    )
    toolset = McpToolset(connection_params=params)
    names = [tool.name for tool in await toolset.get_tools()]
    await toolset.close()
    return names
