"""An ordinary application: its executor does what the message's text requests."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from a2a.helpers import new_data_part, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import Part

from agentdouble import A2AApp

PATIENCE_S = 60


class Gate:
    """Holds turns until a test opens it."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def open(self) -> None:
        """Let all turns pass."""
        self._event.set()

    def close(self) -> None:
        """Hold turns from now on."""
        self._event.clear()

    async def wait(self) -> None:
        """Wait without blocking a thread."""
        for _ in range(PATIENCE_S * 100):
            if self._event.is_set():
                return
            await asyncio.sleep(0.01)


GATE = Gate()


class Ordinary(AgentExecutor):
    """An executor as in the specification: no cancel, no task event first."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Do what the text requests; echo anything else."""
        updater = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
        if context.current_task is not None:
            await updater.complete(new_text_message(f"Then {context.get_user_input()}."))
            return
        text = context.get_user_input()
        await getattr(self, f"_{text}", self._echo)(text, updater, event_queue)

    async def _echo(self, text: str, updater: TaskUpdater, queue: EventQueue) -> None:
        await updater.complete(new_text_message(f"You said: {text}"))

    async def _talk(self, text: str, updater: TaskUpdater, queue: EventQueue) -> None:
        await queue.enqueue_event(updater.new_agent_message([Part(text="Hi.")]))

    async def _work(self, text: str, updater: TaskUpdater, queue: EventQueue) -> None:
        await updater.start_work(new_text_message("reading"))
        await updater.add_artifact([new_text_part("one ")], artifact_id="a", name="text")
        await updater.add_artifact(
            [new_text_part("two")], artifact_id="a", append=True, last_chunk=True
        )
        await updater.complete(new_text_message("done"))

    async def _parts(self, text: str, updater: TaskUpdater, queue: EventQueue) -> None:
        parts = [
            new_text_part("text"),
            new_data_part({"key": "value"}),
            Part(raw=b"\x00\x01", media_type="application/octet-stream", filename="f.bin"),
            Part(url="http://localhost/f.txt", media_type="text/plain"),
        ]
        await updater.add_artifact(parts, artifact_id="p")
        await updater.complete()

    async def _ask(self, text: str, updater: TaskUpdater, queue: EventQueue) -> None:
        await updater.requires_input(new_text_message("Which?"))

    async def _authorize(self, text: str, updater: TaskUpdater, queue: EventQueue) -> None:
        await updater.requires_auth(new_text_message("Who?"))

    async def _wait(self, text: str, updater: TaskUpdater, queue: EventQueue) -> None:
        await updater.start_work()
        await GATE.wait()
        await updater.add_artifact([new_text_part("late")], artifact_id="late")
        await updater.complete()

    async def _hold(self, text: str, updater: TaskUpdater, queue: EventQueue) -> None:
        """Wait until a message says "go"."""
        GATE.close()
        await self._wait(text, updater, queue)

    async def _go(self, text: str, updater: TaskUpdater, queue: EventQueue) -> None:
        GATE.open()
        await self._echo(text, updater, queue)

    async def _fail(self, text: str, updater: TaskUpdater, queue: EventQueue) -> None:
        await updater.failed(new_text_message("no luck"))

    async def _reject(self, text: str, updater: TaskUpdater, queue: EventQueue) -> None:
        await updater.reject(new_text_message("not me"))


def ordinary(name: str = "ordinary", **settings: Any) -> A2AApp:
    """Return an application with default settings."""
    app = A2AApp(name, **settings)
    app.agent_executor(runner="echo")(Ordinary)
    return app


def message(text: str, **more: Any) -> dict[str, Any]:
    """Return the parameters of a message."""
    configuration = more.pop("configuration", None)
    message = {"messageId": f"m-{text}", "role": "ROLE_USER", "parts": [{"text": text}], **more}
    return {"message": message, **({"configuration": configuration} if configuration else {})}
