"""Workflow agents in each other, resumable, with a question in the middle."""

from google.adk.agents import LlmAgent, LoopAgent, SequentialAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.tools import LongRunningFunctionTool, exit_loop
from scripted import asked, call, echo, last, model


def wait() -> dict:
    """Wait for a person."""
    return {"status": "waiting"}


def looping(request):
    if last(request).function_response is not None and "done" in asked(request):
        return call("exit_loop")
    return call("wait") if last(request).function_response is None else "waiting"


asker = LlmAgent(
    name="asker", model=model(looping), tools=[LongRunningFunctionTool(wait), exit_loop]
)
app = App(
    name="nested",
    root_agent=SequentialAgent(
        name="outer",
        sub_agents=[
            LlmAgent(name="opener", model=model(echo)),
            LoopAgent(name="inner", max_iterations=3, sub_agents=[asker]),
            LlmAgent(name="closer", model=model(echo)),
        ],
    ),
    resumability_config=ResumabilityConfig(is_resumable=True),
)
