"""Callbacks before and after the model."""

from google.adk.agents import LlmAgent
from google.adk.models import LlmResponse
from scripted import asked, content, echo, model


def before(callback_context, llm_request):
    replaces = asked(llm_request) == "replace"
    return LlmResponse(content=content("instead of the model")) if replaces else None


def after(callback_context, llm_response):
    if llm_response.partial:
        return None
    callback_context.state["seen"] = llm_response.content.parts[0].text
    return LlmResponse(content=content("after the model"))


root_agent = LlmAgent(
    name="around_model",
    model=model(echo),
    before_model_callback=before,
    after_model_callback=after,
)
