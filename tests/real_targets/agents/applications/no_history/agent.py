"""An agent that sees this turn alone."""

from google.adk.agents import LlmAgent
from scripted import echo, model

root_agent = LlmAgent(name="forgetful", model=model(echo), include_contents="none")
