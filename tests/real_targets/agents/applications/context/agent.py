"""A tool that looks at what its context has."""

from google.adk.agents import LlmAgent
from google.adk.tools import ToolContext
from scripted import once


async def check(tool_context: ToolContext) -> dict:
    """Look at what the context has."""
    return {
        "agent": tool_context.agent_name,
        "user": tool_context.user_id,
        "session": tool_context.session.id,
        "app": tool_context.session.app_name,
        "events": len(tool_context.session.events),
        "said": tool_context.user_content.parts[0].text,
        "artifacts": await tool_context.list_artifacts(),
    }


root_agent = LlmAgent(name="looks", model=once("check"), tools=[check])
