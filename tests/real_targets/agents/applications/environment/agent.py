"""An agent that reads what its .env has set."""

import os

from google.adk.agents import LlmAgent
from scripted import model

SET = "SET_BEFORE", "FROM_ENV_FILE", "SUBSTITUTED", "OF_PARENT"

root_agent = LlmAgent(
    name="environment", model=model(lambda request: str([os.environ.get(one) for one in SET]))
)
