"""veadk: an agent that calls a tool, and one that asks with what its knowledge base has found."""

from __future__ import annotations

from typing import Any

import scripted_model
from google.adk.runners import InMemoryRunner
from google.genai import types
from scripted_model import DOCUMENTS, QUESTION, SUM, add, prompt


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome of each part."""
    scripted_model.use(facts)
    from veadk import Agent  # it reads the environment when it is imported
    from veadk.knowledgebase import KnowledgeBase

    base = KnowledgeBase(backend="local", app_name="app")
    base.add_from_text(DOCUMENTS)
    (found,) = base.search(QUESTION, top_k=1)
    said = await run(Agent(name="a", instruction="Add.", tools=[add]), SUM)
    return {
        # a result that is no object is put into one
        "tool agent": {"chat completions": said.replace('{"result": 5}', "5")},
        "retrieval agent": {
            "chat completions": await run(
                Agent(name="a", instruction="Answer."), prompt(found.content)
            )
        },
    }


async def run(agent: Any, text: str) -> str:
    """Return the texts of an agent's events."""
    runner = InMemoryRunner(agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="ann")
    message = types.Content(role="user", parts=[types.Part(text=text)])
    stream = runner.run_async(user_id="ann", session_id=session.id, new_message=message)
    parts = [part async for e in stream for part in (e.content.parts if e.content else [])]
    return "".join(part.text or "" for part in parts)
