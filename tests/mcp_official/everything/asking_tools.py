"""Tools that talk to the client while they run: logs, progress, questions, changes."""

from __future__ import annotations

import json
from typing import Any

from mcp.server.subscriptions import PromptsListChanged, ToolsListChanged
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitResult,
    SamplingMessage,
    TextContent,
)

from tests.mcp_official.everything import forms
from tests.mcp_official.everything.offers import WATCHED
from tests.mcp_official.everything.plain_tools import reply
from tests.mcp_official.everything.tables import Context, Tools, text_argument

TOOLS = Tools()


@TOOLS.add()
async def test_tool_with_logging(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Log three lines, one after the other."""
    for line in ("execution started", "processing data", "execution completed"):
        await _log(ctx, f"Tool {line}")
    return reply("Tool with logging executed.")


@TOOLS.add()
async def test_logging_tool(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Log a line, which nobody gets who has not asked for it."""
    await _log(ctx, "A line")
    return reply("Logged.")


@TOOLS.add()
async def test_tool_with_progress(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Report progress from 0 to 100."""
    for progress in (0, 50, 100):
        await ctx.session.report_progress(progress, 100, f"Completed step {progress} of 100")
    return reply("Tool with progress executed.")


@TOOLS.add()
async def test_reconnection(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Close the stream in the middle of the call: the client comes back for the answer."""
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
    return reply("Reconnection test completed.")


@TOOLS.add(text_argument("prompt"))
async def test_sampling(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Have the client's model answer a prompt."""
    prompt = TextContent(text=_argument(params, "prompt"))
    answer = await ctx.session.create_message(
        [SamplingMessage(role="user", content=prompt)],
        max_tokens=100,
        related_request_id=ctx.request_id,
    )
    content = answer.content
    return reply(f"LLM response: {content.text if isinstance(content, TextContent) else content}")


@TOOLS.add(text_argument("message"))
async def test_elicitation(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Ask the user for a name and an address."""
    answer = await _ask(ctx, _argument(params, "message"), forms.USER)
    return reply(f"User response: {_summary(answer)}")


@TOOLS.add()
async def test_elicitation_sep1034_defaults(
    ctx: Context, params: CallToolRequestParams
) -> CallToolResult:
    """Ask the user with a default for each kind of field."""
    answer = await _ask(ctx, "Review and update the values", forms.DEFAULTS)
    return reply(f"Elicitation completed: {_summary(answer)}")


@TOOLS.add()
async def test_elicitation_sep1330_enums(
    ctx: Context, params: CallToolRequestParams
) -> CallToolResult:
    """Ask the user to choose, in each way there is."""
    answer = await _ask(ctx, "Choose", forms.CHOICES)
    return reply(f"Elicitation completed: {_summary(answer)}")


@TOOLS.add()
async def test_trigger_tool_change(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Tell listeners that the list of tools has changed."""
    await ctx.lifespan_context.bus.publish(ToolsListChanged())
    return reply("Tools changed.")


@TOOLS.add()
async def test_trigger_prompt_change(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Tell listeners that the list of prompts has changed."""
    await ctx.lifespan_context.bus.publish(PromptsListChanged())
    return reply("Prompts changed.")


@TOOLS.add()
async def change_watched_resource(ctx: Context, params: CallToolRequestParams) -> CallToolResult:
    """Tell who watches the watched resource that it has changed."""
    await ctx.lifespan_context.changed(WATCHED)
    return reply("Resource changed.")


async def _log(ctx: Context, line: str) -> None:
    await ctx.session.send_log_message("info", line, related_request_id=ctx.request_id)


async def _ask(ctx: Context, message: str, form: forms.Form) -> ElicitResult:
    return await ctx.session.elicit_form(message, form, related_request_id=ctx.request_id)


def _summary(answer: ElicitResult) -> str:
    return f"action={answer.action}, content={json.dumps(answer.content)}"


def _argument(params: CallToolRequestParams, name: str) -> Any:
    return (params.arguments or {})[name]
