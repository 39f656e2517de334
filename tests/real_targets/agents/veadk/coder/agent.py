"""An agent of veadk that runs code in the sandbox; its model always wants the same."""

from google.adk.models import BaseLlm, LlmResponse
from google.genai import types
from veadk import Agent
from veadk.tools.builtin_tools.run_code import run_code


class Scripted(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        answered = llm_request.contents[-1].parts[-1].function_response
        if answered is not None:
            part = types.Part(text=str(answered.response))
        else:
            code = {"code": "print(6 * 7)", "language": "python3"}
            part = types.Part.from_function_call(name="run_code", args=code)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


root_agent = Agent(
    name="coder", model=Scripted(model="scripted"), model_api_key="none", tools=[run_code]
)
