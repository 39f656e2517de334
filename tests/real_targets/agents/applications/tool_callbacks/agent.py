"""Callbacks before and after a tool."""

from google.adk.agents import LlmAgent
from scripted import asked, call, last, model


def look(what: str) -> dict:
    """Look at something."""
    return {"seen": what}


def script(request):
    if last(request).function_response is not None:
        return asked(request)
    return call("look", what=asked(request))


def before(tool, args, tool_context):
    return {"seen": "nothing"} if args["what"] == "replace" else None


def after(tool, args, tool_context, tool_response):
    tool_context.state["looked"] = tool.name
    return {**tool_response, "after": True}


root_agent = LlmAgent(
    name="around_tool",
    model=model(script),
    tools=[look],
    before_tool_callback=before,
    after_tool_callback=after,
)
