"""The reference application of MCP: tools of every kind that the checks ask for."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import agentdouble

if TYPE_CHECKING:
    from agentdouble import MCPApp

NAME = "reference-tools"


class Size(enum.Enum):
    """An enum, by whose values a schema goes."""

    SMALL = "small"
    LARGE = "large"


@dataclass
class Item:
    """A complex object."""

    name: str
    count: int = 1


@dataclass
class Order:
    """A complex object with others inside."""

    customer: str
    items: list[Item] = field(default_factory=list)


def reference_tools() -> MCPApp:
    """Return the application."""
    app = agentdouble.MCPApp(NAME)

    @app.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @app.tool
    async def join(first: str, second: str = "!") -> str:
        """Join two texts.

        The second one is
        optional.
        """
        return first + second

    @app.tool
    def place(order: Order, size: Size = Size.SMALL, express: bool | None = None) -> dict[str, Any]:
        """Place an order."""
        return {"order": asdict(order), "size": size.value, "express": express}

    @app.tool
    async def facts(text: str) -> dict:  # type: ignore[type-arg]
        """Return a dict of all kinds of values."""
        return {"text": text, "number": 1.5, "nothing": None, "nested": {"list": [1, True, "x"]}}

    @app.agent_as_a_tool
    async def shout(prompt: str) -> str:
        """Answer in capitals; nothing else."""
        return prompt.upper()

    return app
