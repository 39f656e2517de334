"""The format of a double's live outputs: a stream of events for the session of a request."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

from agentdouble.core.invoke_tool import RUN_HEADER
from doublecheck.values.executions import LiveOutput
from doublecheck.wire.calls import Request

LISTENING = "listening"  # the first event; all outputs after it are sent


@dataclass(frozen=True)
class FeedEvent:
    """An event of an execution: an output, the number of missed outputs, or its end."""

    output: LiveOutput | None = None
    dropped: int = 0
    over: bool = False


def named(request: Request, run: str) -> Request:
    """Return a request that runs code, with a name that identifies its outputs."""
    return dataclasses.replace(request, headers={**request.headers, RUN_HEADER: run})


def read(kind: str, text: str, run: str) -> FeedEvent | None:
    """Read an event of the feed. Return None if it belongs to another execution."""
    data = json.loads(text)
    if data.get("run") != run:
        return None
    if kind == "output":
        return FeedEvent(output=LiveOutput(data["msg_type"], data["content"]))
    return FeedEvent(dropped=data.get("messages", 0), over=kind == "finished")
