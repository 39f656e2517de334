"""An App of another name than its directory."""

from google.adk.agents import LlmAgent
from google.adk.apps import App
from scripted import echo, model

app = App(name="other_name", root_agent=LlmAgent(name="named", model=model(echo)))
