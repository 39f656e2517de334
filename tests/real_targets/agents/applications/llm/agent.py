"""An LlmAgent, as most are."""

from google.adk.agents import LlmAgent
from scripted import echo, model

root_agent = LlmAgent(name="llm", model=model(echo), description="Echoes", instruction="Be short.")
