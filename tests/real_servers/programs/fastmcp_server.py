"""A server on FastMCP, for any of its versions: ``fastmcp_server.py stdio``, or a port."""

from __future__ import annotations

import sys

from fastmcp import Context, FastMCP

app = FastMCP("real")


@app.tool
async def progress(ctx: Context) -> str:
    """Tell of progress."""
    await ctx.report_progress(1, 2)
    return "done"


@app.tool
async def log(ctx: Context) -> str:
    """Write to the client's log."""
    await ctx.info("half")
    return "done"


@app.tool
async def sample(ctx: Context) -> str:
    """Ask the client's model."""
    result = await ctx.sample("What is the capital of France?")
    return str(result.text)


@app.tool
async def elicit(ctx: Context) -> str:
    """Ask the client's user."""
    return str(await ctx.elicit("Who?", response_type=str))


@app.resource("data://words")
def words() -> str:
    """Return words."""
    return "words"


@app.prompt
def ask(word: str) -> str:
    """Return a question."""
    return f"What is {word}?"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        app.run("stdio", show_banner=False)
    else:
        app.run("http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
