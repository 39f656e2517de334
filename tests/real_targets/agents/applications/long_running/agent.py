"""A tool that takes long: the result comes with a later message."""

from google.adk.agents import LlmAgent
from google.adk.tools import LongRunningFunctionTool
from scripted import asked, call, last, model


def approve(amount: int) -> dict:
    """Ask a person."""
    return {"status": "pending", "amount": amount}


def script(request):
    if last(request).function_response is not None:
        return asked(request)
    return call("approve", amount=5)


root_agent = LlmAgent(name="asker", model=model(script), tools=[LongRunningFunctionTool(approve)])
