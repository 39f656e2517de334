"""The tools of the MCP reference application: one of every kind that the checks need."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

NAME = "reference-tools"


class Size(enum.Enum):
    """An enum whose values appear in a schema."""

    SMALL = "small"
    LARGE = "large"


@dataclass
class Item:
    """A complex object."""

    name: str
    count: int = 1


@dataclass
class Order:
    """A complex object that contains others."""

    customer: str
    items: list[Item] = field(default_factory=list)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def join(first: str, second: str = "!") -> str:
    """Join two texts.

    The second one is
    optional.
    """
    return first + second


def place(order: Order, size: Size = Size.SMALL, express: bool | None = None) -> dict[str, Any]:
    """Place an order."""
    return {"order": asdict(order), "size": size.value, "express": express}


async def facts(text: str) -> dict:  # type: ignore[type-arg]
    """Return a dict of all kinds of values."""
    return {"text": text, "number": 1.5, "nothing": None, "nested": {"list": [1, True, "x"]}}


def describe(ratio: float, exact: bool, tags: list[str], fields: dict[str, Any]) -> dict[str, Any]:
    """Return every argument as it arrived."""
    return {"ratio": ratio, "exact": exact, "tags": tags, "fields": fields}


_counts: Counter[str] = Counter()


def count(name: str) -> int:
    """Count the calls with a name."""
    _counts[name] += 1
    return _counts[name]


async def shout(prompt: str) -> str:
    """Answer in capitals; nothing else."""
    return prompt.upper()


TOOLS: tuple[Callable[..., Any], ...] = (add, join, place, facts, describe, count)
AGENT = shout
