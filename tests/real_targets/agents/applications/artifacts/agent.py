"""A tool that saves, loads and lists artifacts, of the session and of the user."""

from google.adk.agents import LlmAgent
from google.adk.tools import ToolContext
from google.genai import types
from scripted import once


async def store(tool_context: ToolContext) -> dict:
    """Store artifacts."""
    text = types.Part(text="text")
    blob = types.Part.from_bytes(data=b"\x00\xff", mime_type="application/x-test")
    version = await tool_context.save_artifact("a.txt", text)
    await tool_context.save_artifact("user:b.bin", blob, custom_metadata={"k": 1})
    loaded = await tool_context.load_artifact("user:b.bin")
    return {
        "version": version,
        "names": await tool_context.list_artifacts(),
        "loaded": loaded.inline_data.mime_type,
        "missing": await tool_context.load_artifact("none.txt"),
    }


root_agent = LlmAgent(name="saver", model=once("store"), tools=[store])
