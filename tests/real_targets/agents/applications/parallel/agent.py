"""Agents at the same time, each in its branch."""

from google.adk.agents import LlmAgent, ParallelAgent
from scripted import echo, model

root_agent = ParallelAgent(
    name="at_once",
    sub_agents=[
        LlmAgent(name=name, model=model(echo), output_key=name) for name in ("left", "right")
    ],
)
