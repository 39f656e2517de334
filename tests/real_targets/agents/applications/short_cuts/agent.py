"""Tools that end the turn, or give it to another agent."""

from google.adk.agents import LlmAgent
from google.adk.tools import ToolContext
from scripted import asked, call, echo, last, model


def final(tool_context: ToolContext) -> dict:
    """End the turn with this result."""
    tool_context.actions.skip_summarization = True
    return {"final": True}


def give_up(tool_context: ToolContext) -> None:
    """Escalate."""
    tool_context.actions.escalate = True


def hand_over(tool_context: ToolContext) -> str:
    """Give the turn to the other agent."""
    tool_context.actions.transfer_to_agent = "other"
    return "handed over"


def script(request):
    return asked(request) if last(request).function_response else call(asked(request))


root_agent = LlmAgent(
    name="short",
    model=model(script),
    tools=[final, give_up, hand_over],
    sub_agents=[LlmAgent(name="other", model=model(echo), disallow_transfer_to_parent=True)],
)
