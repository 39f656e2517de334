"""An agent of veadk that answers with run_code."""

from __future__ import annotations

import os
from typing import Any

from google.adk.runners import InMemoryRunner
from google.genai import types
from veadk import Agent
from veadk.tools.builtin_tools.run_code import run_code


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Ask twice in one conversation; return what was said and which tools were called."""
    os.environ["AGENTKIT_TOOL_ID"] = facts.get("tool_id", facts["tool"])
    agent = Agent(name="coder", instruction="Run code.", tools=[run_code])
    runner = InMemoryRunner(agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="ann")
    turns = [await ask(runner, session.id, prompt) for prompt in facts["prompts"]]
    return {"said": [said for said, _ in turns], "called": [called for _, called in turns]}


async def ask(runner: InMemoryRunner, session_id: str, prompt: str) -> tuple[str, list[str]]:
    """Return the last words of a turn, and the names of the tools that it called."""
    message = types.Content(role="user", parts=[types.Part(text=prompt)])
    said, called = "", []
    async for event in runner.run_async(user_id="ann", session_id=session_id, new_message=message):
        for part in event.content.parts if event.content else ():
            said = part.text or said
            called += [part.function_call.name] if part.function_call else []
    return said, called
