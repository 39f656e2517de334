"""Two calls of a plain function in one answer."""

from google.adk.agents import LlmAgent
from scripted import asked, call, last, model


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def script(request):
    if last(request).function_response is None:
        return [call("add", a=1, b=2), call("add", a=3, b=4)]
    return asked(request)


root_agent = LlmAgent(name="adder", model=model(script), tools=[add])
