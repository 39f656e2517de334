"""ExecBash: commands in a session's own bash, through its workbench."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentdouble import ledger

if TYPE_CHECKING:
    from agentdouble.sandbox.workbench.client import Workbench

_EXEC = "/v1/bash/exec"
_CLOSE = "/v1/bash/sessions/{}/close"


class Terminal:
    """The bash sessions in which one instance runs ExecBash (U-EXECBASH-STATE)."""

    def __init__(self) -> None:
        self._names = (f"default-{n}" if n > 1 else "default" for n in itertools.count(1))
        self._kept = next(self._names)

    async def run(self, workbench: Workbench, command: Mapping[str, Any]) -> dict[str, Any]:
        """Run a command, a body of ``POST /v1/bash/exec``, and return the envelope it answers."""
        if ledger.choose("U-EXECBASH-STATE") == "fresh":
            return await self._run_alone(workbench, command)
        kept = self._kept
        answer = await workbench.post(_EXEC, {**command, "session_id": kept})
        if _status(answer) == "running" and kept == self._kept:
            self._kept = next(self._names)  # what comes next must not wait for it
        return answer

    async def _run_alone(self, workbench: Workbench, command: Mapping[str, Any]) -> dict[str, Any]:
        name = uuid.uuid4().hex
        try:
            answer = await workbench.post(_EXEC, {**command, "session_id": name})
        except asyncio.CancelledError:  # nobody is left who could want it
            await workbench.post(_CLOSE.format(name), {})
            raise
        if _status(answer) == "completed":
            await workbench.post(_CLOSE.format(name), {})
        return answer


def _status(answer: Mapping[str, Any]) -> str | None:
    data = answer.get("data")
    return data.get("status") if isinstance(data, dict) else None
