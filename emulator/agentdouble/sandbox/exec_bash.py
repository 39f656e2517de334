"""ExecBash: commands in a session's own bash, and the events that listeners receive of them.

Without a listener, a command is simply posted. If a caller disconnects, its command is interrupted,
and the listeners receive the rest of the output before the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentdouble import ledger
from agentdouble.errors import WorkbenchError
from agentdouble.sandbox.workbench.paths import ABANDON, LIVE_COMMAND

if TYPE_CHECKING:
    from agentdouble.sandbox.output_feed import ExecutionEnded, ExecutionPublisher
    from agentdouble.sandbox.workbench.client import Workbench


_CLOSE = "/v1/bash/sessions/{}/close"


class ExecBash:
    """The bash sessions in which one instance runs ExecBash (U-EXECBASH-STATE)."""

    def __init__(self) -> None:
        self._names = (f"default-{n}" if n > 1 else "default" for n in itertools.count(1))
        self._kept = next(self._names)
        self._closing: set[asyncio.Task[dict[str, Any]]] = set()

    async def run(
        self, workbench: Workbench, command: Mapping[str, Any], publisher: ExecutionPublisher
    ) -> dict[str, Any]:
        """Run a command and return its envelope: see ``run_command``."""
        if ledger.choose("U-EXECBASH-STATE") == "fresh":
            return await self._run_alone(workbench, command, publisher)
        kept = self._kept
        answer = await run_command(workbench, {**command, "session_id": kept}, publisher)
        if _status(answer) == "running" and kept == self._kept:
            self._kept = next(self._names)  # the next command must not wait for this one
        return answer

    async def _run_alone(
        self, workbench: Workbench, command: Mapping[str, Any], publisher: ExecutionPublisher
    ) -> dict[str, Any]:
        name = uuid.uuid4().hex
        try:
            answer = await run_command(workbench, {**command, "session_id": name}, publisher)
        except asyncio.CancelledError:  # the caller has disconnected: no client needs it
            await self._close(workbench, name)
            raise
        if _status(answer) == "completed":
            await self._close(workbench, name)
        return answer

    async def _close(self, workbench: Workbench, name: str) -> None:
        """Close a bash in a task of its own, because the caller may be cancelled once more."""
        closing = asyncio.ensure_future(workbench.post(_CLOSE.format(name), {}))
        self._closing.add(closing)
        closing.add_done_callback(self._closed)
        await asyncio.shield(closing)

    def _closed(self, closing: asyncio.Task[dict[str, Any]]) -> None:
        self._closing.discard(closing)
        if not closing.cancelled():
            closing.exception()  # a caller that waits sees it; if none waits, the session ended


def _status(answer: Mapping[str, Any]) -> str | None:
    data = answer.get("data")
    return data.get("status") if isinstance(data, dict) else None


_EXEC = "/v1/bash/exec"
_LANGUAGE = "bash"
_STREAMS = ("stdout", "stderr")


async def run_command(
    workbench: Workbench, command: Mapping[str, Any], publisher: ExecutionPublisher
) -> dict[str, Any]:
    """Run a command, a body of ``POST /v1/bash/exec``, and return its envelope.

    The answer is the same with and without listeners. If the first listener comes while the
    command runs, it receives the output at the end. Raises WorkbenchError.
    """
    ended: ExecutionEnded = "interrupted"
    try:
        answer = await (_run_live if publisher.has_listeners else _run_unheard)(
            workbench, command, publisher
        )
        ended = _ended(answer)
        return answer
    finally:
        publisher.finished(ended, context_lost=not workbench.alive)


async def _run_unheard(
    workbench: Workbench, command: Mapping[str, Any], publisher: ExecutionPublisher
) -> dict[str, Any]:
    answer = await workbench.post(_EXEC, command)
    data = answer.get("data") or {}
    for name in _STREAMS:
        if data.get(name):
            _publish(publisher, name, data[name])
    return answer


async def _run_live(
    workbench: Workbench, command: Mapping[str, Any], publisher: ExecutionPublisher
) -> dict[str, Any]:
    """Run a command and publish its output, to its end even if the caller disconnects."""
    relay = _Relay(publisher)
    running = asyncio.ensure_future(workbench.post_streamed(LIVE_COMMAND, command, relay.receive))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        if relay.command_id is not None:
            which = {"session_id": command["session_id"], "command_id": relay.command_id}
            if await _abandoned(workbench, which):
                await asyncio.wait({running})
        raise
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _abandoned(workbench: Workbench, which: Mapping[str, Any]) -> bool:
    """Interrupt a command after its caller disconnected; return whether its events go on.

    They do not go on if the session no longer knows the command, which then ends with its
    connection.
    """
    with contextlib.suppress(WorkbenchError):
        return bool((await workbench.post(ABANDON, which)).get("success"))
    return False


class _Relay:
    """Publishes the events of a command; ``command_id`` is set when the command starts."""

    def __init__(self, publisher: ExecutionPublisher) -> None:
        self.command_id: str | None = None
        self._publisher = publisher

    def receive(self, event: Mapping[str, Any]) -> None:
        """Publish an event of the workbench."""
        if event["event"] == "started":
            self.command_id = event["command_id"]
            self._publisher.started(_LANGUAGE, None)
        elif event["event"] == "cleared":
            self._publisher.output("clear_output", {"wait": False}, 0)
        else:
            _publish(self._publisher, event["name"], event["text"])


def _publish(publisher: ExecutionPublisher, name: str, text: str) -> None:
    publisher.output("stream", {"name": name, "text": text}, len(text))


def _ended(answer: Mapping[str, Any]) -> ExecutionEnded:
    data = answer.get("data") or {}
    if data.get("status") == "completed":
        return "error" if data["exit_code"] else "ok"
    ends: Mapping[str | None, ExecutionEnded] = {
        "pending": "timeout",
        "running": "timeout",
        "timed_out": "timeout",
        "killed": "interrupted",
    }
    return ends.get(data.get("status"), "error")
