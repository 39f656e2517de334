"""Tools and prompts by name, registered by a decorator; the docstring is the description."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    Prompt,
    PromptArgument,
    Tool,
)

from tests.mcp_official.everything.state import State

Context = ServerRequestContext[State]
Schema = dict[str, Any]
ToolRun = Callable[
    [Context, CallToolRequestParams], Awaitable["CallToolResult | InputRequiredResult"]
]
PromptRun = Callable[
    [Context, GetPromptRequestParams], Awaitable["GetPromptResult | InputRequiredResult"]
]

NO_ARGUMENTS: Schema = {"type": "object", "properties": {}}


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Listed = TypeVar("Listed", bound=_Named)
Run = TypeVar("Run")


class Table(Generic[Listed, Run]):
    """Registered items by name, in the order of registration."""

    def __init__(self, kind: str) -> None:
        self._what = kind
        self._offers: dict[str, tuple[Listed, Run]] = {}

    def put(self, listed: Listed, run: Run) -> None:
        self._offers[listed.name] = (listed, run)

    def update(self, other: Table[Listed, Run]) -> None:
        self._offers.update(other._offers)

    def listed(self) -> list[Listed]:
        return [listed for listed, _ in self._offers.values()]

    def run(self, name: str) -> Run:
        if name not in self._offers:
            raise MCPError(INVALID_PARAMS, f"Unknown {self._what}: {name}")
        return self._offers[name][1]


class Tools(Table[Tool, ToolRun]):
    """Tools, each with its input schema."""

    def __init__(self) -> None:
        super().__init__("tool")

    def add(self, schema: Schema = NO_ARGUMENTS) -> Callable[[ToolRun], ToolRun]:
        def put(run: ToolRun) -> ToolRun:
            self.put(
                Tool(name=_name(run), description=inspect.getdoc(run), input_schema=schema), run
            )
            return run

        return put

    def schema(self, name: str) -> Mapping[str, Any] | None:
        return self._offers[name][0].input_schema if name in self._offers else None


class Prompts(Table[Prompt, PromptRun]):
    """Prompts, each with the names of its arguments, all of them required."""

    def __init__(self) -> None:
        super().__init__("prompt")

    def add(self, *names: str) -> Callable[[PromptRun], PromptRun]:
        def put(run: PromptRun) -> PromptRun:
            arguments = [PromptArgument(name=name, required=True) for name in names]
            description = inspect.getdoc(run)
            self.put(Prompt(name=_name(run), description=description, arguments=arguments), run)
            return run

        return put


def text_argument(name: str, **more: Any) -> Schema:
    """Return a schema with one required string."""
    properties = {name: {"type": "string", **more}}
    return {"type": "object", "properties": properties, "required": [name]}


def _name(run: Any) -> str:
    return str(run.__name__)
