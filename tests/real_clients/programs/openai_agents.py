"""A conversation of openai-agents: MCP servers over streamable HTTP, and the scripted model."""

from __future__ import annotations

import json
from typing import Any

import openai
import scripted_model
from agents.mcp import MCPServerStreamableHttp, MCPUtil
from agents.tool import FunctionTool
from agents.tool_context import ToolContext
from scripted_model import DOCUMENTS, QUESTION, SUM, prompt

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunContextWrapper,
    Runner,
    function_tool,
    set_tracing_disabled,
)


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Hold the whole conversation; return the outcome of each part."""
    servers = facts["mcp"]
    outcome: dict[str, Any] = {}
    async with server_of(servers["application"]) as server:
        tools = await tools_of(server)
        outcome["tools"] = sorted(tools)
        outcome["call"] = await call(tools["add"], {"a": 2, "b": 3})
        outcome["failure"] = (await server.call_tool("fail", {})).content[0].text
    async with server_of(servers["runtime"]) as server:
        outcome["runtime"] = await call((await tools_of(server))["add"], {"a": 2, "b": 3})
    async with server_of(servers["front"]) as server:
        outcome["front"] = await call((await tools_of(server))["add"], {"a": 2, "b": 3})
    async with server_of(servers["service"]) as server:
        await use_service(server, outcome)
    outcome["refusal"] = await refused(servers["refused"])
    return {"with sessions": outcome, **await use_model(facts)}


async def use_model(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the outcomes of agents of the scripted model."""
    scripted_model.use(facts)
    set_tracing_disabled(True)
    client = openai.AsyncOpenAI()
    models: dict[str, Any] = {
        "chat completions": OpenAIChatCompletionsModel("gpt-4o", client),
        "responses": OpenAIResponsesModel("gpt-4o", client),
    }
    tools = [function_tool(scripted_model.add)]
    asked = {
        name: await ask(Agent("a", model=model, tools=[*tools]), SUM)
        for name, model in models.items()
    }
    keeping = Agent("a", model=models["responses"], tools=[*tools])
    asked["responses, kept"] = await ask(keeping, SUM, auto_previous_response_id=True)
    streamed = Runner.run_streamed(keeping, SUM)
    async for _ in streamed.stream_events():
        pass
    asked["stream"] = streamed.final_output
    embedded = await client.embeddings.create(
        model="text-embedding-3-small", input=[QUESTION, *DOCUMENTS]
    )
    question, *documents = (item.embedding for item in embedded.data)
    found = prompt(scripted_model.nearest(question, documents))
    retrieved = {name: await ask(Agent("a", model=model), found) for name, model in models.items()}
    return {"tool agent": asked, "retrieval agent": retrieved}


async def ask(agent: Agent[Any], text: str, **options: Any) -> str:
    """Return what an agent says at last."""
    return str((await Runner.run(agent, text, **options)).final_output)


async def use_service(server: MCPServerStreamableHttp, outcome: dict[str, Any]) -> None:
    """Use the features that its interface supports."""
    outcome["error"] = (await server.call_tool("test_error_handling", {})).content[0].text
    contents = (await server.call_tool("test_multiple_content_types", {})).content
    outcome["contents"] = [content.type for content in contents]
    outcome["resources"] = [str(item.uri) for item in (await server.list_resources()).resources]
    read = await server.read_resource("test://template/7/data")
    outcome["read"] = read.contents[0].text
    outcome["prompts"] = len((await server.list_prompts()).prompts)
    prompt = await server.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
    outcome["prompt"] = prompt.messages[0].content.text


def server_of(server: dict[str, Any]) -> MCPServerStreamableHttp:
    """Return a server as an agent receives it."""
    return MCPServerStreamableHttp(
        {"url": server["url"], "headers": server["headers"]}, client_session_timeout_seconds=60
    )


async def tools_of(server: MCPServerStreamableHttp) -> dict[str, FunctionTool]:
    """Return the tools of an agent with a server, by name."""
    agent = Agent("agent", mcp_servers=[server])
    tools = await MCPUtil.get_all_function_tools([server], True, RunContextWrapper(None), agent)
    return {tool.name: tool for tool in tools if isinstance(tool, FunctionTool)}


async def call(tool: FunctionTool, arguments: dict[str, Any]) -> str:
    """Return the text that a model would read."""
    context: Any = ToolContext(
        None, tool_name=tool.name, tool_call_id="1", tool_arguments=json.dumps(arguments)
    )
    answer = await tool.on_invoke_tool(context, json.dumps(arguments))
    return str(answer["text"] if isinstance(answer, dict) else answer)


async def refused(server: dict[str, Any]) -> bool:
    """Return whether a server refuses a wrong key."""
    try:
        async with server_of(server) as opened:
            await opened.list_tools()
    except BaseException:
        return True
    return False
