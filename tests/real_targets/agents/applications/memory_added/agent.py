"""A callback that adds the session to the memory after each turn."""

from google.adk.agents import LlmAgent
from scripted import model


async def after(callback_context):
    await callback_context.add_session_to_memory()
    found = await callback_context.search_memory("blue")
    callback_context.state["found"] = sum(len(one.content.parts) for one in found.memories)


root_agent = LlmAgent(
    name="rememberer", model=model(lambda request: "blue sky"), after_agent_callback=after
)
