"""A toolset whose tools depend on the state."""

from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool, ToolContext
from google.adk.tools.base_toolset import BaseToolset
from scripted import asked, call, last, model


def unlock(tool_context: ToolContext) -> str:
    """Unlock the other tool."""
    tool_context.state["unlocked"] = True
    return "unlocked"


def secret() -> str:
    """Tell the secret."""
    return "the secret"


class Tools(BaseToolset):
    async def get_tools(self, readonly_context=None):
        unlocked = readonly_context is not None and readonly_context.state.get("unlocked")
        return [FunctionTool(secret if unlocked else unlock)]

    async def close(self):
        pass


def script(request):
    if last(request).function_response is not None:
        return asked(request)
    return call(next(iter(request.tools_dict)))


root_agent = LlmAgent(name="gatekeeper", model=model(script), tools=[Tools()])
