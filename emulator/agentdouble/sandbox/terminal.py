"""ExecBash: commands in a session's own bash, through its workbench."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentdouble import ledger
from agentdouble.sandbox import commands

if TYPE_CHECKING:
    from agentdouble.sandbox.output_feed import ExecutionPublisher
    from agentdouble.sandbox.workbench.client import Workbench

_CLOSE = "/v1/bash/sessions/{}/close"


class Terminal:
    """The bash sessions in which one instance runs ExecBash (U-EXECBASH-STATE)."""

    def __init__(self) -> None:
        self._names = (f"default-{n}" if n > 1 else "default" for n in itertools.count(1))
        self._kept = next(self._names)
        self._closing: set[asyncio.Task[dict[str, Any]]] = set()

    async def run(
        self, workbench: Workbench, command: Mapping[str, Any], publisher: ExecutionPublisher
    ) -> dict[str, Any]:
        """Run a command and return the envelope it answers: see ``commands``."""
        if ledger.choose("U-EXECBASH-STATE") == "fresh":
            return await self._run_alone(workbench, command, publisher)
        kept = self._kept
        answer = await commands.run(workbench, {**command, "session_id": kept}, publisher)
        if _status(answer) == "running" and kept == self._kept:
            self._kept = next(self._names)  # what comes next must not wait for it
        return answer

    async def _run_alone(
        self, workbench: Workbench, command: Mapping[str, Any], publisher: ExecutionPublisher
    ) -> dict[str, Any]:
        name = uuid.uuid4().hex
        try:
            answer = await commands.run(workbench, {**command, "session_id": name}, publisher)
        except asyncio.CancelledError:  # nobody is left who could want it
            await self._close(workbench, name)
            raise
        if _status(answer) == "completed":
            await self._close(workbench, name)
        return answer

    async def _close(self, workbench: Workbench, name: str) -> None:
        """Close a bash, in a task of its own: whoever was cancelled may be so once more."""
        closing = asyncio.ensure_future(workbench.post(_CLOSE.format(name), {}))
        self._closing.add(closing)
        closing.add_done_callback(self._closed)
        await asyncio.shield(closing)

    def _closed(self, closing: asyncio.Task[dict[str, Any]]) -> None:
        self._closing.discard(closing)
        if not closing.cancelled():
            closing.exception()  # seen by who waits; if nobody does, the session has ended


def _status(answer: Mapping[str, Any]) -> str | None:
    data = answer.get("data")
    return data.get("status") if isinstance(data, dict) else None
