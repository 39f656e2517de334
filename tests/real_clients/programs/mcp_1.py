"""A conversation of the official MCP client, mcp 1.x, in the versions with sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import ClientSession, types
from mcp.client.streamable_http import streamablehttp_client
from pydantic import AnyUrl


class User:
    """Answers the servers' questions and keeps their messages."""

    def __init__(self) -> None:
        self.logged: list[Any] = []
        self.progress: list[float] = []
        self.changed: list[str] = []

    async def sample(self, _context: Any, params: Any) -> types.CreateMessageResult:
        content = types.TextContent(type="text", text="Paris")
        return types.CreateMessageResult(role="assistant", content=content, model="a-model")

    async def fill_in(self, _context: Any, params: Any) -> types.ElicitResult:
        fields = params.requestedSchema["properties"]
        return types.ElicitResult(action="accept", content=dict.fromkeys(fields, "ann"))

    async def log(self, line: Any) -> None:
        self.logged.append(line.data)

    async def note(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append(progress)

    async def hear(self, message: Any) -> None:
        if isinstance(getattr(message, "root", None), types.ResourceUpdatedNotification):
            self.changed.append(str(message.root.params.uri))


@asynccontextmanager
async def connected(server: dict[str, Any], user: User) -> AsyncIterator[ClientSession]:
    """Return a session with a server."""
    async with (
        streamablehttp_client(server["url"], headers=server["headers"]) as (read, write, _),
        ClientSession(
            read,
            write,
            sampling_callback=user.sample,
            elicitation_callback=user.fill_in,
            logging_callback=user.log,
            message_handler=user.hear,
        ) as session,
    ):
        await session.initialize()
        yield session


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Hold the whole conversation; return the outcome of each part."""
    user, servers = User(), facts["mcp"]
    outcome: dict[str, Any] = {}
    async with connected(servers["application"], user) as session:
        outcome["tools"] = sorted(tool.name for tool in (await session.list_tools()).tools)
        outcome["call"] = text(await session.call_tool("add", {"a": 2, "b": 3}))
        outcome["failure"] = error(await session.call_tool("fail", {}))
    async with connected(servers["runtime"], user) as session:
        outcome["runtime"] = text(await session.call_tool("add", {"a": 2, "b": 3}))
    async with connected(servers["front"], user) as session:
        outcome["front"] = text(await session.call_tool("add", {"a": 2, "b": 3}))
    async with connected(servers["service"], user) as session:
        await use_service(session, user, outcome)
    outcome["refusal"] = await refused(servers["refused"], user)
    return {"with sessions": outcome}


async def use_service(session: ClientSession, user: User, outcome: dict[str, Any]) -> None:
    """Use every feature of a server."""
    outcome["error"] = error(await session.call_tool("test_error_handling", {}))
    contents = (await session.call_tool("test_multiple_content_types", {})).content
    outcome["contents"] = [content.type for content in contents]
    await session.call_tool("test_tool_with_progress", {}, progress_callback=user.note)
    outcome["progress"] = user.progress
    await session.set_logging_level("info")
    await session.call_tool("test_tool_with_logging", {})
    outcome["logging"] = user.logged
    outcome["elicitation"] = text(await session.call_tool("test_elicitation", {"message": "Who?"}))
    outcome["sampling"] = text(await session.call_tool("test_sampling", {"prompt": "Where?"}))
    outcome["resources"] = [str(item.uri) for item in (await session.list_resources()).resources]
    templates = (await session.list_resource_templates()).resourceTemplates
    outcome["templates"] = [template.name for template in templates]
    read = await session.read_resource(AnyUrl("test://template/7/data"))
    outcome["read"] = read.contents[0].text
    outcome["prompts"] = len((await session.list_prompts()).prompts)
    prompt = await session.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
    outcome["prompt"] = prompt.messages[0].content.text
    reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
    completed = await session.complete(reference, {"name": "arg1", "value": "par"})
    outcome["completion"] = completed.completion.values
    await session.subscribe_resource(AnyUrl("test://watched-resource"))
    while not user.changed:  # the client opens the stream of changes when it comes to it
        await session.call_tool("change_watched_resource", {})
    outcome["subscription"] = user.changed[0]


async def refused(server: dict[str, Any], user: User) -> bool:
    """Return whether a server refuses a wrong key."""
    try:
        async with connected(server, user) as session:
            await session.list_tools()
    except BaseException as problem:
        return "401" in leaf(problem)
    return False


def leaf(problem: BaseException) -> str:
    """Return the text of the exceptions in a group."""
    inside = getattr(problem, "exceptions", None)
    return " ".join(map(leaf, inside)) if inside else f"{type(problem).__name__}: {problem}"


def text(result: types.CallToolResult) -> str:
    """Return the text of a successful result."""
    return "an error" if result.isError else result.content[0].text


def error(result: types.CallToolResult) -> str:
    """Return the text of an error."""
    return result.content[0].text if result.isError else "no error"
