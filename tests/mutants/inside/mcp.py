"""Mutations of the double under which the checks of mcp fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mcp.types import Tool

from agentdouble.apps import MCPApp
from agentdouble.apps.mcp.server import AppServer
from tests.mutants.inside import inside


def _listed(patch: pytest.MonkeyPatch, change: Callable[[list[Tool]], list[Tool]]) -> None:
    original = AppServer.list_tools

    async def list_tools(self: AppServer) -> list[Tool]:
        return change(await original(self))

    patch.setattr(AppServer, "list_tools", list_tools)


def list_a_tool_that_nobody_registered(patch: pytest.MonkeyPatch) -> None:
    _listed(patch, lambda tools: [*tools, tools[0].model_copy(update={"name": "another"})])


def forget_the_schema(patch: pytest.MonkeyPatch) -> None:
    _listed(
        patch, lambda tools: [_without(tool, input_schema={"type": "object"}) for tool in tools]
    )


def forget_the_description(patch: pytest.MonkeyPatch) -> None:
    _listed(patch, lambda tools: [_without(tool, description="") for tool in tools])


def _without(tool: Tool, **replaced: Any) -> Tool:
    return tool.model_copy(update=replaced)


def return_text_alone(patch: pytest.MonkeyPatch) -> None:
    original = AppServer.call_tool

    async def call_tool(self: AppServer, *asked: Any) -> Any:
        result: Any = await original(self, *asked)
        return result.model_copy(update={"structured_content": None})

    patch.setattr(AppServer, "call_tool", call_tool)


def wrap_no_agent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MCPApp, "agent_as_a_tool", lambda _self, function: function)


MUTANTS = (
    inside("MCP-03", list_a_tool_that_nobody_registered),
    inside("MCP-04", forget_the_description),
    inside("MCP-04", forget_the_schema),
    inside("MCP-05", return_text_alone),
    inside("MCP-06", wrap_no_agent),
)
