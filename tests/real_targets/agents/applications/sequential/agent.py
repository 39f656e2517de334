"""One agent after the other; the second reads what the first left in the state."""

from google.adk.agents import LlmAgent, SequentialAgent
from scripted import echo, model

first = LlmAgent(name="first", model=model(echo), output_key="draft")
second = LlmAgent(
    name="second",
    model=model(lambda request: request.config.system_instruction),
    instruction="Improve: {draft}",
)
root_agent = SequentialAgent(name="in_order", sub_agents=[first, second])
