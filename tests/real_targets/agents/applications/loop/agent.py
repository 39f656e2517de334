"""A loop that a tool ends."""

from google.adk.agents import LlmAgent, LoopAgent
from google.adk.tools import ToolContext, exit_loop
from scripted import call, last, model


def count(tool_context: ToolContext) -> int:
    """Count a round."""
    tool_context.state["round"] = tool_context.state.get("round", 0) + 1
    return tool_context.state["round"]


def script(request):
    answered = last(request).function_response
    if answered is None:
        return call("count")
    return call("exit_loop") if answered.response["result"] % 3 == 0 else "once more"


root_agent = LoopAgent(
    name="rounds",
    max_iterations=9,
    sub_agents=[LlmAgent(name="counter", model=model(script), tools=[count, exit_loop])],
)
