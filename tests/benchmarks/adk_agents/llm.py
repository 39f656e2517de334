"""An agent of ADK with a model that answers without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types


class Model(BaseLlm):  # type: ignore[misc,unused-ignore]
    """The model."""

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncIterator[LlmResponse]:
        """Return the size of the request."""
        text = f"an answer to {len(llm_request.contents)} contents"
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


root_agent = LlmAgent(name="llm", model=Model(model="none"), instruction="Answer.")
