"""A conversation of langchain-mcp-adapters: tools of several servers in LangChain."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool, ToolException
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from mcp.types import ElicitResult


class User:
    """Answers the servers' questions and keeps their messages."""

    def __init__(self) -> None:
        self.logged: list[Any] = []
        self.progress: list[float] = []

    async def fill_in(self, mcp_context: Any, params: Any, context: Any) -> ElicitResult:
        fields = params.requestedSchema["properties"]
        return ElicitResult(action="accept", content=dict.fromkeys(fields, "ann"))

    async def log(self, params: Any, context: Any) -> None:
        self.logged.append(params.data)

    async def note(self, progress: float, total: Any, message: Any, context: Any) -> None:
        self.progress.append(progress)


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Hold the whole conversation; return the outcome of each part."""
    user = User()
    callbacks = Callbacks(
        on_logging_message=user.log, on_progress=user.note, on_elicitation=user.fill_in
    )
    connections: Any = {
        name: {"transport": "streamable_http", **server} for name, server in facts["mcp"].items()
    }
    client = MultiServerMCPClient(connections, callbacks=callbacks)
    application = await tools_of(client, "application")
    outcome: dict[str, Any] = {
        "tools": sorted(application),
        "call": await call(application["add"], a=2, b=3),
        "failure": await call(application["fail"]),
        "runtime": await call((await tools_of(client, "runtime"))["add"], a=2, b=3),
        "front": await call((await tools_of(client, "front"))["add"], a=2, b=3),
    }
    service = await tools_of(client, "service")
    outcome["error"] = await call(service["test_error_handling"])
    await call(service["test_tool_with_progress"])
    outcome["progress"] = user.progress
    async with client.session("service") as session:
        await session.set_logging_level("info")
        await session.call_tool("test_tool_with_logging", {})
    outcome["logging"] = user.logged
    outcome["elicitation"] = await call(service["test_elicitation"], message="Who?")
    resources = await client.get_resources("service", uris="test://template/7/data")
    outcome["read"] = resources[0].as_string()
    arguments = {"arg1": "a", "arg2": "b"}
    prompt = await client.get_prompt("service", "test_prompt_with_arguments", arguments=arguments)
    outcome["prompt"] = prompt[0].content
    outcome["refusal"] = await refused(client)
    return {"with sessions": outcome}


async def tools_of(client: MultiServerMCPClient, server: str) -> dict[str, BaseTool]:
    """Return the tools of a server by name."""
    return {tool.name: tool for tool in await client.get_tools(server_name=server)}


async def call(tool: BaseTool, **arguments: Any) -> str:
    """Return the text of a result or of an error."""
    try:
        answer = await tool.ainvoke(arguments)
    except ToolException as problem:
        return str(problem)
    return answer if isinstance(answer, str) else str(answer[0]["text"])


async def refused(client: MultiServerMCPClient) -> bool:
    """Return whether a server refuses a wrong key."""
    try:
        await client.get_tools(server_name="refused")
    except BaseException:
        return True
    return False
