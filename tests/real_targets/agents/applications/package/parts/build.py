from google.adk.agents import LlmAgent
from scripted import model

from ..texts import GREETING  # noqa: TID252

root_agent = LlmAgent(name="packaged", model=model(lambda request: GREETING))
