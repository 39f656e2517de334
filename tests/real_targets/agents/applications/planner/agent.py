"""An agent with a planner, which marks thoughts."""

from google.adk.agents import LlmAgent
from google.adk.planners import PlanReActPlanner
from scripted import model

ANSWER = "/*PLANNING*/ first, then /*FINAL_ANSWER*/ forty-two"

root_agent = LlmAgent(
    name="planner", model=model(lambda request: ANSWER), planner=PlanReActPlanner()
)
