"""A model that answers with an error and its usage."""

from google.adk.agents import LlmAgent
from google.adk.models import LlmResponse
from google.genai import types
from scripted import model


def script(request):
    return LlmResponse(
        error_code="SAFETY",
        error_message="blocked ä",
        finish_reason=types.FinishReason.SAFETY,
        usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=3),
    )


root_agent = LlmAgent(name="blocked", model=model(script))
