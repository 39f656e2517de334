"""A server on the Python SDK that speaks both eras; it runs as a script."""

from __future__ import annotations

from mcp.server.mcpserver import Context, MCPServer

app = MCPServer("sdk")


@app.tool()
async def add(a: int, b: int, context: Context) -> int:  # type: ignore[type-arg]
    """Add two numbers, and tell of it."""
    await context.report_progress(1, 2)
    return a + b


if __name__ == "__main__":
    app.run("stdio")
