"""A conversation of the official MCP client, mcp 2.x, with and without sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

ASKING = {  # the tools that ask the client: over a session's stream, or in rounds
    "legacy": ("test_elicitation", {"message": "Who?"}, "test_sampling", {"prompt": "Where?"}),
    "auto": (
        "test_input_required_result_elicitation",
        {},
        "test_input_required_result_sampling",
        {},
    ),
}
WATCHED = "test://watched-resource"


class User:
    """Answers the servers' questions and keeps their messages."""

    def __init__(self) -> None:
        self.logged: list[Any] = []
        self.progress: list[float] = []
        self.changed: list[str] = []

    async def sample(self, _context: Any, params: Any) -> types.CreateMessageResult:
        content = types.TextContent(text="Paris")
        return types.CreateMessageResult(role="assistant", content=content, model="a-model")

    async def fill_in(self, _context: Any, params: Any) -> types.ElicitResult:
        fields = params.requested_schema["properties"]
        return types.ElicitResult(action="accept", content=dict.fromkeys(fields, "ann"))

    async def log(self, line: Any) -> None:
        self.logged.append(line.data)

    async def note(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append(progress)

    async def hear(self, message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            self.changed.append(str(message.params.uri))


@asynccontextmanager
async def connected(server: dict[str, Any], mode: str, user: User) -> AsyncIterator[Client]:
    """Return a client of a server."""
    async with (
        create_mcp_http_client(headers=server["headers"]) as http,
        Client(
            streamable_http_client(server["url"], http_client=http),
            mode=mode,
            sampling_callback=user.sample,
            elicitation_callback=user.fill_in,
            logging_callback=user.log,
            message_handler=user.hear,
            log_level="info" if mode == "auto" else None,
        ) as client,
    ):
        yield client


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Hold the whole conversation in each era; return the outcome of each part."""
    return {
        "with sessions": await converse_in("legacy", facts["mcp"]),
        "without sessions": await converse_in("auto", facts["mcp"]),
    }


async def converse_in(mode: str, servers: dict[str, Any]) -> dict[str, Any]:
    """Hold the conversation in one era."""
    user = User()
    outcome: dict[str, Any] = {}
    async with connected(servers["application"], mode, user) as client:
        outcome["tools"] = sorted(tool.name for tool in (await client.list_tools()).tools)
        outcome["call"] = text(await client.call_tool("add", {"a": 2, "b": 3}))
        outcome["failure"] = error(await client.call_tool("fail"))
    async with connected(servers["runtime"], mode, user) as client:
        outcome["runtime"] = text(await client.call_tool("add", {"a": 2, "b": 3}))
    async with connected(servers["front"], mode, user) as client:
        outcome["front"] = text(await client.call_tool("add", {"a": 2, "b": 3}))
    async with connected(servers["service"], mode, user) as client:
        await use_service(client, mode, user, outcome)
    outcome["refusal"] = await refused(servers["refused"], mode, user)
    return outcome


async def use_service(client: Client, mode: str, user: User, outcome: dict[str, Any]) -> None:
    """Use every feature of a server."""
    outcome["error"] = error(await client.call_tool("test_error_handling"))
    contents = (await client.call_tool("test_multiple_content_types")).content
    outcome["contents"] = [content.type for content in contents]
    await client.call_tool("test_tool_with_progress", {}, progress_callback=user.note)
    outcome["progress"] = user.progress
    if mode == "legacy":
        await client.set_logging_level("info")
    await client.call_tool("test_tool_with_logging")
    outcome["logging"] = user.logged
    elicit, elicit_with, sample, sample_with = ASKING[mode]
    outcome["elicitation"] = text(await client.call_tool(elicit, elicit_with))
    outcome["sampling"] = text(await client.call_tool(sample, sample_with))
    outcome["resources"] = [str(item.uri) for item in (await client.list_resources()).resources]
    templates = (await client.list_resource_templates()).resource_templates
    outcome["templates"] = [template.name for template in templates]
    read = await client.read_resource("test://template/7/data")
    outcome["read"] = read.contents[0].text
    outcome["prompts"] = len((await client.list_prompts()).prompts)
    prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
    outcome["prompt"] = prompt.messages[0].content.text
    reference = types.PromptReference(name="test_prompt_with_arguments")
    completed = await client.complete(reference, {"name": "arg1", "value": "par"})
    outcome["completion"] = completed.completion.values
    outcome["subscription"] = await (subscribe if mode == "legacy" else listen)(client, user)


async def subscribe(client: Client, user: User) -> str:
    """Return the resource whose update arrives on the session's stream."""
    await client.subscribe_resource(WATCHED)
    while not user.changed:  # the client opens the stream of changes when it comes to it
        await client.call_tool("change_watched_resource")
    return user.changed[0]


async def listen(client: Client, user: User) -> str:
    """Return the resource whose update arrives on a stream opened for it."""
    async with client.listen(resource_subscriptions=[WATCHED]) as changes:
        await client.call_tool("change_watched_resource")
        return str((await changes.__anext__()).uri)


async def refused(server: dict[str, Any], mode: str, user: User) -> bool:
    """Return whether a server refuses a wrong key."""
    try:
        async with connected(server, mode, user) as client:
            await client.list_tools()
    except BaseException as problem:
        return "MCPError" in leaf(problem)
    return False


def leaf(problem: BaseException) -> str:
    """Return the text of the exceptions in a group."""
    inside = getattr(problem, "exceptions", None)
    return " ".join(map(leaf, inside)) if inside else f"{type(problem).__name__}: {problem}"


def text(result: types.CallToolResult) -> str:
    """Return the text of a successful result."""
    return "an error" if result.is_error else result.content[0].text


def error(result: types.CallToolResult) -> str:
    """Return the text of an error."""
    return result.content[0].text if result.is_error else "no error"
