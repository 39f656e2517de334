"""A Workflow: functions and an agent as nodes, and a route."""

from google.adk import Context, Event
from google.adk.agents import LlmAgent
from google.adk.workflow import START, Workflow
from scripted import echo, model


def classify(node_input: str) -> Event:
    """Choose a route."""
    return Event(output=node_input, route="short" if len(node_input) < 6 else "long")


def shorten(ctx: Context, node_input: str) -> str:
    """Shorten the text."""
    ctx.state["shortened"] = node_input[:2]
    return node_input[:2]


agent = LlmAgent(name="writer", model=model(echo))
root_agent = Workflow(
    name="flow",
    edges=[(START, classify, {"short": agent, "long": shorten})],
)
