"""A model that calls a tool that the agent does not have."""

from google.adk.agents import LlmAgent
from scripted import once

root_agent = LlmAgent(name="mistaken", model=once("missing"), tools=[])
