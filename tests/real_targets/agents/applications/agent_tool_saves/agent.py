"""An agent as a tool, which saves an artifact, changes the state and fails when asked to."""

from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.tools import AgentTool, ToolContext
from google.genai import types
from scripted import asked, call, echo, last, model, once


async def save(tool_context: ToolContext) -> int:
    """Save an artifact."""
    tool_context.state["saved"] = True
    tool_context.state["user:saved"] = 1
    return await tool_context.save_artifact("inner.txt", types.Part(text="inner"))


def outer(request):
    if last(request).function_response is not None:
        return asked(request)
    return call("steps", request=asked(request))


def failing(request):
    if any("fail" in (part.text or "") for one in request.contents for part in one.parts):
        raise RuntimeError("the inner agent is broken")
    return echo(request)


saver = LlmAgent(name="saver", model=once("save"), tools=[save])
steps = SequentialAgent(
    name="steps",
    description="Two steps",
    sub_agents=[saver, LlmAgent(name="then", model=model(failing))],
)
root_agent = LlmAgent(name="outer", model=model(outer), tools=[AgentTool(steps)])
