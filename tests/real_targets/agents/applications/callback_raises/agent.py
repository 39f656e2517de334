"""A callback that raises."""

from google.adk.agents import LlmAgent
from scripted import echo, model


def after(callback_context, llm_response):
    raise LookupError("the callback is broken")


root_agent = LlmAgent(name="unlucky", model=model(echo), after_model_callback=after)
