"""A tool that runs after the user confirms it."""

from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool
from scripted import once


def delete(what: str) -> str:
    """Delete something."""
    return f"deleted {what}"


root_agent = LlmAgent(
    name="careful",
    model=once("delete", what="all"),
    tools=[FunctionTool(delete, require_confirmation=True)],
)
