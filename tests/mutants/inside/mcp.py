"""Mutations of the double under which the checks of mcp fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentdouble.apps import MCPApp
from agentdouble.apps.mcp import server
from agentdouble.apps.mcp.tool_results import Results
from tests.mutants.inside import inside


def list_a_tool_that_nobody_registered(patch: pytest.MonkeyPatch) -> None:
    original = server._Tools.list

    async def list_(self: Any, *asked: Any) -> Any:
        found = await original(self, *asked)
        found.tools = [*found.tools, found.tools[0].model_copy(update={"name": "another"})]
        return found

    patch.setattr(server._Tools, "list", list_)


def forget_the_schema(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(server, "_on_wire", _without(input_schema={"type": "object"}))


def forget_the_description(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(server, "_on_wire", _without(description=""))


def _without(**replaced: Any) -> Callable[[Any], Any]:
    original = server._on_wire
    return lambda tool: original(tool).model_copy(update=replaced)


def return_text_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Results, "_structured", lambda *_: None)


def wrap_no_agent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MCPApp, "agent_as_a_tool", lambda _self, function: function)


MUTANTS = (
    inside("MCP-03", list_a_tool_that_nobody_registered),
    inside("MCP-04", forget_the_description),
    inside("MCP-04", forget_the_schema),
    inside("MCP-05", return_text_alone),
    inside("MCP-06", wrap_no_agent),
)
