"""An App that can be resumed after a long-running tool."""

from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.tools import LongRunningFunctionTool
from scripted import asked, call, echo, last, model


def approve() -> dict:
    """Ask a person."""
    return {"status": "pending"}


def script(request):
    return asked(request) if last(request).function_response else call("approve")


asker = LlmAgent(name="asker", model=model(script), tools=[LongRunningFunctionTool(approve)])
app = App(
    name="app_resumable",
    root_agent=SequentialAgent(
        name="steps", sub_agents=[asker, LlmAgent(name="closer", model=model(echo))]
    ),
    resumability_config=ResumabilityConfig(is_resumable=True),
)
