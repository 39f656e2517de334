"""An instruction that needs a key of the state."""

from google.adk.agents import LlmAgent
from scripted import model

root_agent = LlmAgent(
    name="needy",
    model=model(lambda request: request.config.system_instruction),
    instruction="Speak {language}.",
)
