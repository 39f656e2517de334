"""A command of a session, and what listeners hear of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentdouble.errors import WorkbenchError
from agentdouble.sandbox.workbench.paths import ABANDON, LIVE_COMMAND

if TYPE_CHECKING:
    from agentdouble.sandbox.output_feed import Ended, ExecutionPublisher
    from agentdouble.sandbox.workbench.client import Workbench

_EXEC = "/v1/bash/exec"
_LANGUAGE = "bash"
_STREAMS = ("stdout", "stderr")


async def run(
    workbench: Workbench, command: Mapping[str, Any], publisher: ExecutionPublisher
) -> dict[str, Any]:
    """Run a command, a body of ``POST /v1/bash/exec``, and return the envelope it answers.

    The answer is the same whether somebody listens or not. Who begins to listen while it runs
    hears of its output at its end. Raises WorkbenchError.
    """
    ended: Ended = "interrupted"
    try:
        answer = await (_heard if publisher.heard else _alone)(workbench, command, publisher)
        ended = _ended(answer)
        return answer
    finally:
        publisher.finished(ended, context_lost=not workbench.alive)


async def _alone(
    workbench: Workbench, command: Mapping[str, Any], publisher: ExecutionPublisher
) -> dict[str, Any]:
    answer = await workbench.post(_EXEC, command)
    data = answer.get("data") or {}
    for name in _STREAMS:
        if data.get(name):
            _tell(publisher, name, data[name])
    return answer


async def _heard(
    workbench: Workbench, command: Mapping[str, Any], publisher: ExecutionPublisher
) -> dict[str, Any]:
    """Run a command that is told of; if the caller goes away, so is what it still says."""
    hearing = _Hearing(publisher)
    running = asyncio.ensure_future(workbench.hear(LIVE_COMMAND, command, hearing.hear))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        if hearing.command_id is not None:
            which = {"session_id": command["session_id"], "command_id": hearing.command_id}
            if await _abandoned(workbench, which):
                await asyncio.wait({running})
        raise
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _abandoned(workbench: Workbench, which: Mapping[str, Any]) -> bool:
    """Interrupt a command whose caller has gone; return whether it will be heard to its end.

    One that a session no longer remembers is not: it ends with the connection that hears it.
    """
    with contextlib.suppress(WorkbenchError):
        return bool((await workbench.post(ABANDON, which)).get("success"))
    return False


class _Hearing:
    """Passes on what a workbench tells of a command; ``command_id`` once that has begun."""

    def __init__(self, publisher: ExecutionPublisher) -> None:
        self.command_id: str | None = None
        self._telling = publisher

    def hear(self, event: Mapping[str, Any]) -> None:
        """Have listeners hear of an event."""
        if event["event"] == "started":
            self.command_id = event["command_id"]
            self._telling.started(_LANGUAGE, None)
        elif event["event"] == "cleared":
            self._telling.output("clear_output", {"wait": False}, 0)
        else:
            _tell(self._telling, event["name"], event["text"])


def _tell(publisher: ExecutionPublisher, name: str, text: str) -> None:
    publisher.output("stream", {"name": name, "text": text}, len(text))


def _ended(answer: Mapping[str, Any]) -> Ended:
    data = answer.get("data") or {}
    if data.get("status") == "completed":
        return "error" if data["exit_code"] else "ok"
    ends: Mapping[str | None, Ended] = {
        "pending": "timeout",
        "running": "timeout",
        "timed_out": "timeout",
        "killed": "interrupted",
    }
    return ends.get(data.get("status"), "error")
