"""Callbacks before and after the agent: the first replaces its answer when asked to."""

from google.adk.agents import LlmAgent
from scripted import content, echo, model


def before(callback_context):
    callback_context.state["before"] = callback_context.state.get("before", 0) + 1
    said = callback_context.user_content.parts[0].text
    return content("replaced") if said == "replace" else None


async def after(callback_context):
    return content(f"after {callback_context.state['before']}")


root_agent = LlmAgent(
    name="called_back",
    model=model(echo),
    before_agent_callback=before,
    after_agent_callback=after,
)
