"""An App with a plugin that has every callback, and ends a run early when asked to."""

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.plugins import BasePlugin
from scripted import asked, call, content, last, model

SEEN = []


class Counting(BasePlugin):
    async def before_run_callback(self, *, invocation_context):
        SEEN.append("run")
        said = invocation_context.user_content.parts[0].text
        return content("ended early") if said == "early" else None

    async def after_run_callback(self, *, invocation_context):
        SEEN.append("ran")

    async def before_agent_callback(self, *, agent, callback_context):
        SEEN.append("agent")
        callback_context.state["seen"] = len(SEEN)

    async def before_model_callback(self, *, callback_context, llm_request):
        SEEN.append("model")

    async def before_tool_callback(self, *, tool, tool_args, tool_context):
        SEEN.append("tool")
        return {"from": "the plugin"} if tool_args else None

    async def on_tool_error_callback(self, *, tool, tool_args, tool_context, error):
        SEEN.append("tool error")
        return {"error": str(error)}

    async def on_model_error_callback(self, *, callback_context, llm_request, error):
        SEEN.append("model error")


def fail(because: str = "") -> str:
    """Fail."""
    raise ValueError("always")


def script(request):
    if last(request).function_response is not None:
        return f"{asked(request)} {' '.join(SEEN)}"
    if asked(request) == "model":
        raise RuntimeError("no model")
    return call("fail", because="x") if asked(request) == "replaced" else call("fail")


app = App(
    name="all_of_a_plugin",
    root_agent=LlmAgent(name="counted", model=model(script), tools=[fail]),
    plugins=[Counting(name="counting")],
)
