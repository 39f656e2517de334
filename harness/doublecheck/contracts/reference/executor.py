"""What the reference application of A2A does.

The first word of a message selects it:

=========== =====================================================================
``say``     an artifact with the other words
``steps``   an artifact for each step, the next one when ``release`` has named the gate:
            ``steps GATE one two``
``release`` lets the steps of that gate go on by one
``forget``  has the task store delete the task of that id
=========== =====================================================================

The last two are answered with a message: they make no task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

NAME = "reference-executor"
READ_WITHIN_S = 20.0  # it bounds a check, on a machine that may be busy

Say = Callable[[str], Awaitable[None]]
Tasks = MutableMapping[str, Any]


class Steps:
    """The actions of the executor; ``kept`` is the content of the task store."""

    def __init__(self, kept: Tasks) -> None:
        self._kept = kept
        self._gates: dict[str, asyncio.Event] = {}

    async def do(self, context: Any, event_queue: Any) -> None:
        """Perform the action that a message names, and complete its task."""
        from a2a.server.tasks import TaskUpdater

        word, *words = context.get_user_input().split()
        if word in ("release", "forget"):
            self._obey(word, words[0])
            await event_queue.enqueue_event(_message(word))
            return
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)

        async def say(text: str) -> None:
            await updater.add_artifact([_text_part(text)])

        if word == "steps":
            await self._steps(words[0], words[1:], say)
        else:
            await say(" ".join(words))
        await updater.complete()

    def _obey(self, word: str, name: str) -> None:
        gate = self._gates.get(name)
        if word == "forget":
            self._kept.pop(name, None)
        elif gate is not None:
            gate.set()

    async def _steps(self, name: str, steps: list[str], say: Say) -> None:
        try:
            for step in steps:
                gate = self._gates[name] = asyncio.Event()
                await say(step)
                await asyncio.wait_for(gate.wait(), READ_WITHIN_S)
        finally:
            self._gates.pop(name, None)


def _text_part(text: str) -> Any:
    """Return a part of either version of the A2A SDK."""
    try:
        from a2a.helpers import new_text_part
    except ImportError:  # below 1.0
        from a2a import types

        older: Any = types
        return older.Part(root=older.TextPart(text=text))
    return new_text_part(text)


def _message(text: str) -> Any:
    """Return an agent's message of either version of the A2A SDK."""
    try:
        from a2a.helpers import new_text_message
    except ImportError:  # below 1.0
        from a2a import utils

        older: Any = utils
        return older.new_agent_text_message(text)
    return new_text_message(text)
