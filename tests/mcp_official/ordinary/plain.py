"""Tools that answer at once, with every kind of content."""

from __future__ import annotations

from typing import Annotated

from mcp.types import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)
from pydantic import Field

from agentdouble import MCPApp
from tests.mcp_official.everything import media


def picture() -> ImageContent:
    """Return an image as content."""
    return ImageContent(data=media.picture(), mime_type="image/png")


def resource(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    """Return a resource as content."""
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


def register(app: MCPApp) -> None:
    """Add the tools to an application."""

    @app.tool
    def test_simple_text() -> str:
        """Answer a text."""
        return "This is a simple text response for testing."

    @app.tool
    def test_image_content() -> ImageContent:
        """Answer a picture."""
        return picture()

    @app.tool
    def test_audio_content() -> AudioContent:
        """Answer a sound."""
        return AudioContent(data=media.sound(), mime_type="audio/wav")

    @app.tool
    def test_embedded_resource() -> EmbeddedResource:
        """Answer a resource."""
        text = "This is an embedded resource content."
        return resource("test://embedded-resource", "text/plain", text)

    @app.tool
    def test_multiple_content_types() -> list[ContentBlock]:
        """Answer a text, a picture and a resource."""
        data = '{"test":"data","value":123}'
        return [
            TextContent(text="Multiple content types test:"),
            picture(),
            resource("test://mixed-content-resource", "application/json", data),
        ]

    @app.tool
    def test_error_handling() -> str:
        """Raise."""
        raise ValueError("This tool intentionally returns an error for testing")

    @app.tool
    def region_of_header(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
    ) -> str:
        """Have an argument that is also sent as a header."""
        return f"Region: {region}"
