"""A model that raises, before and after an increment."""

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from scripted import content


class Broken(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        if stream:
            yield LlmResponse(content=content("half "), partial=True)
        raise ConnectionError("the model is not there")


root_agent = LlmAgent(name="offline", model=Broken(model="broken"))
