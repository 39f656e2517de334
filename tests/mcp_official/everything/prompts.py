"""Prompts: plain, with arguments, with a resource, with an image, with a question."""

from __future__ import annotations

from mcp.types import (
    EmbeddedResource,
    GetPromptRequestParams,
    GetPromptResult,
    ImageContent,
    InputRequiredResult,
    PromptMessage,
    TextContent,
    TextResourceContents,
)

from tests.mcp_official.everything import forms, media
from tests.mcp_official.everything.round_tools import ask, filled_in
from tests.mcp_official.everything.tables import Context, Prompts

PROMPTS = Prompts()


@PROMPTS.add()
async def test_simple_prompt(ctx: Context, params: GetPromptRequestParams) -> GetPromptResult:
    """Say one thing."""
    return _of(TextContent(text="This is a simple prompt for testing."))


@PROMPTS.add("arg1", "arg2")
async def test_prompt_with_arguments(
    ctx: Context, params: GetPromptRequestParams
) -> GetPromptResult:
    """Say the arguments."""
    arguments = ", ".join(f"{name}='{value}'" for name, value in (params.arguments or {}).items())
    return _of(TextContent(text=f"Prompt with arguments: {arguments}"))


@PROMPTS.add("resourceUri")
async def test_prompt_with_embedded_resource(
    ctx: Context, params: GetPromptRequestParams
) -> GetPromptResult:
    """Show a resource."""
    resource = TextResourceContents(
        uri=(params.arguments or {})["resourceUri"],
        mime_type="text/plain",
        text="Embedded resource content for testing.",
    )
    text = "Please process the embedded resource above."
    return _of(EmbeddedResource(resource=resource), TextContent(text=text))


@PROMPTS.add()
async def test_prompt_with_image(ctx: Context, params: GetPromptRequestParams) -> GetPromptResult:
    """Show a picture."""
    picture = ImageContent(data=media.picture(), mime_type="image/png")
    return _of(picture, TextContent(text="Please analyze the image above."))


@PROMPTS.add()
async def test_input_required_result_prompt(
    ctx: Context, params: GetPromptRequestParams
) -> GetPromptResult | InputRequiredResult:
    """Ask before saying anything."""
    context = filled_in(params.input_responses, "user_context", "context")
    if context is None:
        question = ask("What context should the prompt use?", forms.one_text("context"))
        return InputRequiredResult(input_requests={"user_context": question})
    return _of(TextContent(text=f"The context is {context}."))


def _of(*contents: TextContent | ImageContent | EmbeddedResource) -> GetPromptResult:
    return GetPromptResult(messages=[PromptMessage(role="user", content=item) for item in contents])
