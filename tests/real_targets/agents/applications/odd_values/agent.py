"""Values in the state and of a tool that are no plain JSON."""

import datetime as dt
import decimal

from google.adk.agents import LlmAgent
from google.adk.tools import ToolContext
from pydantic import BaseModel
from scripted import asked, call, last, model


class Point(BaseModel):
    x: int


VALUES = {
    "date": lambda: dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc),
    "model": lambda: Point(x=1),
    "set": lambda: {1},
    "tuple": lambda: (1, 2),
    "bytes": lambda: b"ab",
    "decimal": lambda: decimal.Decimal("1.5"),
    "nan": lambda: float("nan"),
    "nested": lambda: {"a": [Point(x=2)]},
}


def keep(kind: str, tool_context: ToolContext) -> dict:
    """Keep a value of this kind."""
    tool_context.state["kept"] = VALUES[kind]()
    return {"type": type(tool_context.state["kept"]).__name__}


def give(kind: str) -> object:
    """Return a value of this kind."""
    return VALUES[kind]()


def script(request):
    if last(request).function_response is not None:
        return asked(request)
    name, _, kind = asked(request).partition(" ")
    return call(name, kind=kind)


root_agent = LlmAgent(name="odd", model=model(script), tools=[keep, give])
