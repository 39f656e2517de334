"""A tool that raises."""

from google.adk.agents import LlmAgent
from scripted import once


def divide(a: int, b: int) -> float:
    """Divide two numbers."""
    return a / b


root_agent = LlmAgent(name="divider", model=once("divide", a=1, b=0), tools=[divide])
