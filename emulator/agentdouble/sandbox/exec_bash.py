"""ExecBash: commands in a session's own bash; listeners receive their output at the end."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentdouble.core import ledger

if TYPE_CHECKING:
    from agentdouble.sandbox.output_feed import ExecutionEnded, ExecutionPublisher
    from agentdouble.sandbox.workbench.client import Workbench

_EXEC, _CLOSE = "/v1/bash/exec", "/v1/bash/sessions/{}/close"
_ENDS: Mapping[str | None, ExecutionEnded] = {
    "pending": "timeout",
    "running": "timeout",
    "timed_out": "timeout",
    "killed": "interrupted",
}


class ExecBash:
    """The bash sessions in which one session runs ExecBash (U-EXECBASH-STATE)."""

    def __init__(self) -> None:
        self._names = (f"default-{n}" if n > 1 else "default" for n in itertools.count(1))
        self._kept = next(self._names)
        self._closing: set[asyncio.Task[dict[str, Any]]] = set()

    async def run(
        self,
        workbench: Workbench,
        command: Mapping[str, Any],
        publisher: ExecutionPublisher,
        *,
        alone: bool = False,
    ) -> dict[str, Any]:
        """Run a command, a body of ``POST /v1/bash/exec``, and return its envelope.

        With ``alone`` it has a bash of its own. Raises WorkbenchError.
        """
        publisher.started("bash", None)
        ended: ExecutionEnded = "interrupted"
        try:
            if alone or ledger.choose("U-EXECBASH-STATE") == "fresh":
                answer = await self._run_alone(workbench, command)
            else:
                session_id = self._kept
                answer = await workbench.post(_EXEC, {**command, "session_id": session_id})
                if _data(answer).get("status") == "running" and session_id == self._kept:
                    self._kept = next(self._names)  # the next command must not wait for this one
            ended = publish(answer, publisher)
            return answer
        finally:
            publisher.finished(ended, context_lost=not workbench.alive)

    async def _run_alone(self, workbench: Workbench, command: Mapping[str, Any]) -> dict[str, Any]:
        name = uuid.uuid4().hex
        try:
            answer = await workbench.post(_EXEC, {**command, "session_id": name})
        except asyncio.CancelledError:  # the caller has disconnected: no client needs it
            await self._close(workbench, name)
            raise
        if _data(answer).get("status") == "completed":
            await self._close(workbench, name)
        return answer

    async def _close(self, workbench: Workbench, name: str) -> None:
        """Close a bash in a separate task, because the caller may be cancelled again."""
        closing = asyncio.ensure_future(workbench.post(_CLOSE.format(name), {}))
        self._closing.add(closing)
        closing.add_done_callback(self._closed)
        await asyncio.shield(closing)

    def _closed(self, closing: asyncio.Task[dict[str, Any]]) -> None:
        self._closing.discard(closing)
        if not closing.cancelled():
            closing.exception()  # a caller that waits sees it; if none waits, the session ended


def _data(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    return answer.get("data") or {}


def publish(answer: Mapping[str, Any], publisher: ExecutionPublisher) -> ExecutionEnded:
    """Publish the output of a command, and return how it ended."""
    data = _data(answer)
    for name in ("stdout", "stderr"):
        if text := data.get(name):
            publisher.output("stream", {"name": name, "text": text}, len(text))
    if data.get("status") == "completed":
        return "error" if data["exit_code"] else "ok"
    return _ENDS.get(data.get("status"), "error")
