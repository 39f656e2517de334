"""A conversation of fastmcp's client: 2.x with sessions, later versions also without."""

from __future__ import annotations

from typing import Any

import fastmcp
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.exceptions import ToolError
from mcp.types import PromptReference

MODES: dict[str, dict[str, str]] = (
    {"with sessions": {}}
    if fastmcp.__version__.startswith("2.")
    else {"with sessions": {"mode": "legacy"}, "without sessions": {"mode": "auto"}}
)
ASKING = {  # the tools that ask the client: over a session's stream, or in rounds
    "with sessions": (
        ("test_elicitation", {"message": "Who?"}),
        ("test_sampling", {"prompt": "Where?"}),
    ),
    "without sessions": (
        ("test_input_required_result_elicitation", {}),
        ("test_input_required_result_sampling", {}),
    ),
}


class User:
    """Answers the servers' questions and keeps their messages."""

    def __init__(self) -> None:
        self.logged: list[Any] = []
        self.progress: list[float] = []

    async def sample(self, messages: Any, params: Any, context: Any) -> str:
        return "Paris"

    async def fill_in(self, message: str, kind: Any, params: Any, context: Any) -> Any:
        return dict.fromkeys(kind.__dataclass_fields__, "ann")

    async def log(self, line: Any) -> None:
        self.logged.append(line.data)

    async def note(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append(progress)


def client_of(server: dict[str, Any], user: User, options: dict[str, str]) -> Client:
    """Return a client of a server."""
    return Client(
        StreamableHttpTransport(server["url"], headers=server["headers"]),
        sampling_handler=user.sample,
        elicitation_handler=user.fill_in,
        log_handler=user.log,
        progress_handler=user.note,
        **options,
    )


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Hold the whole conversation in each era; return the outcome of each part."""
    return {era: await converse_in(era, facts["mcp"]) for era in MODES}


async def converse_in(era: str, servers: dict[str, Any]) -> dict[str, Any]:
    """Hold the conversation in one era."""
    user, options = User(), MODES[era]
    outcome: dict[str, Any] = {}
    async with client_of(servers["application"], user, options) as client:
        outcome["tools"] = sorted(tool.name for tool in await client.list_tools())
        outcome["call"] = await call(client, "add", {"a": 2, "b": 3})
        outcome["failure"] = await error(client, "fail")
    async with client_of(servers["runtime"], user, options) as client:
        outcome["runtime"] = await call(client, "add", {"a": 2, "b": 3})
    async with client_of(servers["front"], user, options) as client:
        outcome["front"] = await call(client, "add", {"a": 2, "b": 3})
    async with client_of(servers["service"], user, options) as client:
        await use_service(client, era, user, outcome)
    outcome["refusal"] = await refused(client_of(servers["refused"], user, options))
    return outcome


async def use_service(client: Client, era: str, user: User, outcome: dict[str, Any]) -> None:
    """Use every feature of a server."""
    outcome["error"] = await error(client, "test_error_handling")
    contents = (await client.call_tool("test_multiple_content_types", {})).content
    outcome["contents"] = [content.type for content in contents]
    await client.call_tool("test_tool_with_progress", {})
    outcome["progress"] = user.progress
    if era == "with sessions":
        await client.set_logging_level("info")
        await client.call_tool("test_tool_with_logging", {})
        outcome["logging"] = user.logged
    elicit, sample = ASKING[era]
    outcome["elicitation"] = await call(client, *elicit)
    outcome["sampling"] = await call(client, *sample)
    outcome["resources"] = [str(resource.uri) for resource in await client.list_resources()]
    outcome["templates"] = [template.name for template in await client.list_resource_templates()]
    outcome["read"] = (await client.read_resource("test://template/7/data"))[0].text
    outcome["prompts"] = len(await client.list_prompts())
    prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
    outcome["prompt"] = prompt.messages[0].content.text
    reference = PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
    completed = await client.complete(reference, {"name": "arg1", "value": "par"})
    outcome["completion"] = completed.values


async def call(client: Client, tool: str, arguments: dict[str, Any]) -> str:
    """Return the text of a result."""
    return str((await client.call_tool(tool, arguments)).content[0].text)


async def error(client: Client, tool: str) -> str:
    """Return the text of an error."""
    try:
        await client.call_tool(tool, {})
    except ToolError as problem:
        return str(problem)
    return "no error"


async def refused(client: Client) -> bool:
    """Return whether a server refuses a wrong key."""
    try:
        async with client:
            await client.list_tools()
    except Exception:
        return True
    return False
