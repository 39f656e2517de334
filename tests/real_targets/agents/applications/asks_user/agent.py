"""An agent that asks the user a question."""

from google.adk.agents import LlmAgent
from google.adk.tools import request_input
from scripted import asked, call, last, model


def script(request):
    if last(request).function_response is not None:
        return asked(request)
    return call(request_input.name, message="Which one?")


root_agent = LlmAgent(name="asks", model=model(script), tools=[request_input])
