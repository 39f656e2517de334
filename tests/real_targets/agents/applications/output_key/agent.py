"""The answer is kept in the state."""

from google.adk.agents import LlmAgent
from scripted import echo, model

root_agent = LlmAgent(
    name="keeper",
    model=model(echo),
    output_key="answer",
    instruction="Before: {answer?}",
)
