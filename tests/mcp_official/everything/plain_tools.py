"""Tools that answer at once, with every kind of content."""

from __future__ import annotations

from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    TextContent,
)

from tests.mcp_official.everything import media
from tests.mcp_official.everything.tables import Context, Tools, text_argument

TOOLS = Tools()

ADDRESS = {
    "$anchor": "addressDef",
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
}
CONTACT = {  # every keyword that a server may lose on the way to its listing
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": ADDRESS},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def reply(text: str) -> CallToolResult:
    """Return a result with one text."""
    return CallToolResult(content=[TextContent(text=text)])


@TOOLS.add()
async def test_simple_text(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Answer a text."""
    return reply("This is a simple text response for testing.")


@TOOLS.add()
async def test_image_content(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Answer a picture."""
    return CallToolResult(content=[media.image_content()])


@TOOLS.add()
async def test_audio_content(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Answer a sound."""
    return CallToolResult(content=[media.audio_content()])


@TOOLS.add()
async def test_embedded_resource(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Answer a resource."""
    text = "This is an embedded resource content."
    return CallToolResult(
        content=[media.resource_content("test://embedded-resource", "text/plain", text)]
    )


@TOOLS.add()
async def test_multiple_content_types(
    ctx: Context, params: CallToolRequestParams
) -> CallToolResult:
    """Answer a text, a picture and a resource."""
    data = '{"test":"data","value":123}'
    resource = media.resource_content("test://mixed-content-resource", "application/json", data)
    text = TextContent(text="Multiple content types test:")
    return CallToolResult(content=[text, media.image_content(), resource])


@TOOLS.add()
async def test_error_handling(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Answer an error of the tool."""
    text = TextContent(text="This tool intentionally returns an error for testing")
    return CallToolResult(is_error=True, content=[text])


@TOOLS.add(CONTACT)
async def json_schema_2020_12_tool(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Have a schema with all that JSON Schema 2020-12 offers."""
    return reply(f"Contact: {params.arguments}")


@TOOLS.add(text_argument("region", **{"x-mcp-header": "Region"}))
async def region_of_header(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Have an argument that is also sent as a header."""
    return reply(f"Region: {(params.arguments or {})['region']}")
