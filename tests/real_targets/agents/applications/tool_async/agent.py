"""A coroutine as a tool; it changes the state."""

from google.adk.agents import LlmAgent
from google.adk.tools import ToolContext
from scripted import once


async def note(text: str, tool_context: ToolContext) -> dict:
    """Note a text."""
    notes = [*tool_context.state.get("notes", []), text]
    tool_context.state["notes"] = notes
    return {"notes": len(notes)}


root_agent = LlmAgent(name="noter", model=once("note", text="ü"), tools=[note])
