"""The server on its standard input and output: ``python -m tests.mcp_official.everything``."""

from __future__ import annotations

import anyio
from mcp.server.stdio import stdio_server

from tests.mcp_official import everything


async def _serve() -> None:
    server = everything.server()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(_serve)
