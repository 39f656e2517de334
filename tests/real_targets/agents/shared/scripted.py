"""A model for agents: a function of the request answers instead of a provider."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.genai import types

Answer = str | types.Part | LlmResponse | list[types.Part]
Script = Callable[[LlmRequest], Answer]


class Scripted(BaseLlm):
    """A model that answers what its script returns; it sends a text in words when streaming."""

    model: str = "scripted"
    script: Any

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        answer = self.script(llm_request)
        if stream and isinstance(answer, str):
            for word in answer.split():
                yield LlmResponse(content=content(f"{word} "), partial=True)
        yield answer if isinstance(answer, LlmResponse) else LlmResponse(content=content(answer))


def model(script: Script) -> Scripted:
    """Return a model with this script."""
    return Scripted(script=script)


def content(answer: str | types.Part | list[types.Part]) -> types.Content:
    """Return a model's content of a text or of parts."""
    parts = [types.Part(text=answer)] if isinstance(answer, str) else answer
    return types.Content(role="model", parts=parts if isinstance(parts, list) else [parts])


def call(name: str, **args: Any) -> types.Part:
    """Return the part with which a model calls a tool."""
    return types.Part.from_function_call(name=name, args=args)


def last(request: LlmRequest) -> types.Part:
    """Return the last part that the model is asked with."""
    return request.contents[-1].parts[-1]


def asked(request: LlmRequest) -> str:
    """Return the last text that the model is asked with, and what a tool returned."""
    part = last(request)
    if part.function_response is not None:
        return f"returned {part.function_response.response}"
    return part.text or ""


def once(name: str, **args: Any) -> Scripted:
    """Return a model that calls a tool with these arguments and then says what it returned."""

    def script(request: LlmRequest) -> Answer:
        if last(request).function_response is not None:
            return asked(request)
        return call(name, **args)

    return model(script)


def echo(request: LlmRequest) -> Answer:
    """Say the number of contents and the last text."""
    return f"{len(request.contents)} contents, last: {asked(request)}"
