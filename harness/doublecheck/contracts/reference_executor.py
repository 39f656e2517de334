"""The reference application of A2A: an executor and a task store that the checks can ask.

The first word of a message selects what is done:

=========== =====================================================================
``say``     an artifact with the other words
``steps``   an artifact for each step, the next one when ``release`` has named the gate:
            ``steps GATE one two``
``release`` lets the steps of that gate go on by one
``forget``  has the task store delete the task of that id
=========== =====================================================================
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import agentdouble

if TYPE_CHECKING:
    from agentdouble import A2AApp

NAME = "reference-executor"
READ_WITHIN_S = 5.0


def reference_executor() -> A2AApp:
    """Return the reference application of A2A."""
    from a2a.server.agent_execution import AgentExecutor
    from a2a.server.tasks import TaskStore

    app = agentdouble.A2AApp(NAME)
    kept: dict[str, Any] = {}

    @app.task_store(kept=kept)
    class Kept(TaskStore):
        kept: dict[str, Any]

        def save_task(self, task: Any) -> None:
            self.kept[task.id] = task

        async def get_task(self, task_id: str) -> Any:
            return self.kept.get(task_id)

        def delete_task(self, task_id: str) -> None:
            self.kept.pop(task_id, None)

    @app.agent_executor(runner="echo", kept=kept)
    class Executor(AgentExecutor):
        """Does what the first word of a message says."""

        gates: dict[str, asyncio.Event] = {}  # noqa: RUF012 (one executor)
        kept: dict[str, Any]

        async def execute(self, context: Any, event_queue: Any) -> None:
            do, *words = context.get_user_input().split()
            say = _speaker(context, event_queue)
            if do == "steps":
                await self._steps(words[0], words[1:], say)
            elif do == "release":
                gate = self.gates.get(words[0])
                if gate is not None:
                    gate.set()
            elif do == "forget":
                self.kept.pop(words[0], None)
            else:
                await say(" ".join(words))
            await say.updater.complete()

        async def _steps(self, name: str, steps: list[str], say: _Speaker) -> None:
            try:
                for step in steps:
                    gate = self.gates[name] = asyncio.Event()
                    await say(step)
                    await asyncio.wait_for(gate.wait(), READ_WITHIN_S)
            finally:
                del self.gates[name]

    return app


class _Speaker:
    """Sends texts as artifacts of the task at hand."""

    def __init__(self, updater: Any, make_part: Any) -> None:
        self.updater = updater
        self._make_part = make_part

    async def __call__(self, text: str) -> None:
        await self.updater.add_artifact([self._make_part(text)])


def _speaker(context: Any, event_queue: Any) -> _Speaker:
    from a2a.helpers import new_text_part
    from a2a.server.tasks import TaskUpdater

    return _Speaker(TaskUpdater(event_queue, context.task_id, context.context_id), new_text_part)
