"""Resources: two static ones, one with a template, one to watch."""

from __future__ import annotations

import json
import re

from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    BlobResourceContents,
    EmbeddedResource,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    ImageContent,
    InputRequiredResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)

from tests.mcp_official.everything import forms, media
from tests.mcp_official.everything.round_tools import ask, filled_in
from tests.mcp_official.everything.tables import Context, Prompts

TEXT = "test://static-text"
BINARY = "test://static-binary"
WATCHED = "test://watched-resource"
TEMPLATE = "test://template/{id}/data"

_LISTED = [
    Resource(uri=TEXT, name="text", description="A text that stands", mime_type="text/plain"),
    Resource(uri=BINARY, name="binary", description="A picture", mime_type="image/png"),
    Resource(uri=WATCHED, name="watched", description="One to watch", mime_type="text/plain"),
]
_TEXTS = {
    TEXT: "This is the content of the static text resource.",
    WATCHED: "This is the content of the watched resource.",
}


async def list_resources(
    ctx: Context, params: PaginatedRequestParams | None
) -> ListResourcesResult:
    return ListResourcesResult(resources=_LISTED)


async def list_templates(
    ctx: Context, params: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    listed = ResourceTemplate(
        uri_template=TEMPLATE,
        name="template",
        description="Data by id",
        mime_type="application/json",
    )
    return ListResourceTemplatesResult(resource_templates=[listed])


async def read(ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    return ReadResourceResult(contents=[_content(str(params.uri))])


async def subscribe(ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
    ctx.lifespan_context.watch(str(params.uri), ctx.session)
    return EmptyResult()


async def unsubscribe(ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
    ctx.lifespan_context.unwatch(str(params.uri), ctx.session)
    return EmptyResult()


def _content(uri: str) -> TextResourceContents | BlobResourceContents:
    if uri in _TEXTS:
        return TextResourceContents(uri=uri, mime_type="text/plain", text=_TEXTS[uri])
    if uri == BINARY:
        return BlobResourceContents(uri=uri, mime_type="image/png", blob=media.picture())
    match = re.fullmatch(r"test://template/([^/]+)/data", uri)
    if match is None:
        raise MCPError(INVALID_PARAMS, "Resource not found", {"uri": uri})
    id_ = match[1]
    data = json.dumps({"id": id_, "templateTest": True, "data": f"Data for ID: {id_}"})
    return TextResourceContents(uri=uri, mime_type="application/json", text=data)


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
    uri = (params.arguments or {})["resourceUri"]
    content = "Embedded resource content for testing."
    text = "Please process the embedded resource above."
    return _of(media.resource_content(uri, "text/plain", content), TextContent(text=text))


@PROMPTS.add()
async def test_prompt_with_image(ctx: Context, params: GetPromptRequestParams) -> GetPromptResult:
    """Show a picture."""
    return _of(media.image_content(), TextContent(text="Please analyze the image above."))


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
