"""A tool that searches the memory, and memories before each request."""

from google.adk.agents import LlmAgent
from google.adk.tools import load_memory, preload_memory
from scripted import asked, call, last, model


def script(request):
    if last(request).function_response is not None:
        return asked(request)
    query = asked(request).removeprefix("search ")
    return call("load_memory", query=query) if asked(request).startswith("search ") else "noted"


root_agent = LlmAgent(name="memory", model=model(script), tools=[load_memory, preload_memory])
