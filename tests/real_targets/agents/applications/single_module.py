"""An application that is one module."""

from google.adk.agents import LlmAgent
from scripted import echo, model

root_agent = LlmAgent(name="single", model=model(echo))
