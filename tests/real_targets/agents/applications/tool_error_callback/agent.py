"""Callbacks for errors of a tool and of the model."""

from google.adk.agents import LlmAgent
from google.adk.models import LlmResponse
from scripted import asked, call, content, last, model


def fail() -> None:
    """Fail."""
    raise RuntimeError("the tool is broken")


def script(request):
    if asked(request) == "model":
        raise RuntimeError("the model is broken")
    return asked(request) if last(request).function_response else call("fail")


def of_tool(tool, args, tool_context, error):
    return {"caught": str(error)}


def of_model(callback_context, llm_request, error):
    return LlmResponse(content=content(f"caught {error}"))


root_agent = LlmAgent(
    name="catcher",
    model=model(script),
    tools=[fail],
    on_tool_error_callback=of_tool,
    on_model_error_callback=of_model,
)
