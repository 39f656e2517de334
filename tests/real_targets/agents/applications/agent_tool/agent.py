"""An agent as a tool of another; its state comes back."""

from google.adk.agents import LlmAgent
from google.adk.tools import AgentTool
from scripted import echo, model, once

helper = LlmAgent(name="helper", description="Helps", model=model(echo), output_key="helped")
root_agent = LlmAgent(name="boss", model=once("helper", request="do it"), tools=[AgentTool(helper)])
