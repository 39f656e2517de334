"""The actions of the A2A reference application.

The first part of a message is a JSON object; its ``do`` field selects an action:

=========== =====================================================================
``say``     an artifact with each of ``texts``
``steps``   the same, but each next one waits until ``release`` names the ``gate``
``heard``   an artifact with what ``execute()`` got, as JSON: texts, task, context
``fail``    an artifact with each of ``texts``, then raises
``release`` lets the steps of the gate ``name`` advance by one
``forget``  makes the task store delete the task with the id ``name``
``reply``   a message with the text ``name``
=========== =====================================================================

The last three return a message and do not create a task. Any other text is echoed.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from a2a import types, utils
from a2a.server.agent_execution import AgentExecutor
from a2a.server.tasks import TaskStore, TaskUpdater

from . import actions

helpers: Any = None  # in versions below 1.0
with suppress(ImportError):
    helpers = importlib.import_module("a2a.helpers")

NAME = actions.EXECUTOR_NAME
READ_WITHIN_S = 20.0  # bounds a check, on a machine that may be busy

Say = Callable[[str], Awaitable[None]]
Tasks = MutableMapping[str, Any]


def classes() -> tuple[type[TaskStore], type[AgentExecutor]]:
    """Return a task store, with the method names of both SDKs, and an executor that uses it."""
    tasks: dict[str, Any] = {}
    steps = Steps(tasks)

    class Store(TaskStore):
        async def save(self, task: Any, context: Any = None) -> None:
            tasks[task.id] = task

        async def get(self, task_id: str, context: Any = None) -> Any:
            return tasks.get(task_id)

        async def delete(self, task_id: str, context: Any = None) -> None:
            tasks.pop(task_id, None)

        save_task, get_task, delete_task = save, get, delete

    class Executor(AgentExecutor):
        """Performs the action that the first word of a message names."""

        async def execute(self, context: Any, event_queue: Any) -> None:
            await steps.do(context, event_queue)

        async def cancel(self, context: Any, event_queue: Any) -> None:
            raise NotImplementedError  # every action ends soon anyway

    return Store, Executor


class Steps:
    """The actions of the executor. ``tasks`` is the content of the task store."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._gates: dict[str, asyncio.Event] = {}

    async def do(self, context: Any, event_queue: Any) -> None:
        """Perform the action that a message names, and complete its task."""
        order = _order(context.message)
        do, texts = order["do"], order.get("texts", [])
        if do in ("release", "forget", "reply"):
            self._obey(do, order["name"])
            await event_queue.enqueue_event(_message(order["name"] if do == "reply" else do))
            return
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)

        async def say(text: str) -> None:
            await updater.add_artifact([_text_part(text)])

        if do == "heard":
            await say(_received(context))
        elif do == "steps":
            await self._steps(order["gate"], texts, say)
        else:
            for text in texts:
                await say(text)
        if do == "fail":
            raise RuntimeError("it broke")
        await updater.complete()

    def _obey(self, word: str, name: str) -> None:
        gate = self._gates.get(name)
        if word == "forget":
            self._tasks.pop(name, None)
        elif word == "release" and gate is not None:
            gate.set()

    async def _steps(self, name: str, steps: list[str], say: Say) -> None:
        try:
            for step in steps:
                gate = self._gates[name] = asyncio.Event()
                await say(step)
                await asyncio.wait_for(gate.wait(), READ_WITHIN_S)
        finally:
            self._gates.pop(name, None)


def _order(message: Any) -> dict[str, Any]:
    """Return the action of a message: the JSON of its first part, or an echo of its text."""
    texts = _texts(message)
    try:
        order = json.loads(texts[0])
    except ValueError:
        order = None
    return order if isinstance(order, dict) else {"do": "say", "texts": texts}


def _received(context: Any) -> str:
    texts = _texts(context.message)
    received = {"texts": texts, "task": context.task_id, "context": context.context_id}
    return json.dumps(received)


def _texts(message: Any) -> list[str]:
    """Return the texts of a message's parts, for either version of the A2A SDK."""
    return [str(getattr(part, "root", part).text) for part in message.parts]


def _text_part(text: str) -> Any:
    """Return a part for either version of the A2A SDK."""
    if helpers is None:
        older: Any = types
        return older.Part(root=older.TextPart(text=text))
    return helpers.new_text_part(text)


def _message(text: str) -> Any:
    """Return an agent's message for either version of the A2A SDK."""
    if helpers is None:
        older: Any = utils
        return older.new_agent_text_message(text)
    return helpers.new_text_message(text)
