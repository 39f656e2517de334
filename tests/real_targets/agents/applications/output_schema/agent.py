"""The answer has a schema."""

from google.adk.agents import LlmAgent
from pydantic import BaseModel
from scripted import asked, model


class City(BaseModel):
    name: str
    people: int


def script(request):
    return '{"name": "Oslo", "people": 7}' if asked(request) != "wrong" else '{"name": 1}'


root_agent = LlmAgent(name="city", model=model(script), output_schema=City, output_key="city")
