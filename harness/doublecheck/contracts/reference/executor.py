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

A message whose first part is a JSON object selects by ``do``, so that texts may be anything:

========== ======================================================================
``say``    an artifact with each of ``texts``
``steps``  the same, the next one when ``release`` has named the ``gate``
``reply``  a message with each of ``texts`` in a part of its own, and no task
``heard``  an artifact with what ``execute()`` got, as JSON: texts, task, context
``fail``   an artifact with each of ``texts``, then it raises
========== ======================================================================
"""

from __future__ import annotations

import asyncio
import json
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

        order = _order(context.message)
        do, texts = order["do"], order.get("texts", [])
        if do in ("release", "forget"):
            self._obey(do, order["name"])
        if do in ("release", "forget", "reply"):
            await event_queue.enqueue_event(_message(*(texts or [do])))
            return
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)

        async def say(text: str) -> None:
            await updater.add_artifact([_text_part(text)])

        if do == "heard":
            await say(_heard(context))
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


def _order(message: Any) -> dict[str, Any]:
    """Return what a message orders: the JSON of its first part, or its words."""
    first, *_ = texts = _texts(message)
    try:
        order = json.loads(first)
        if isinstance(order, dict):
            return order
    except ValueError:
        pass
    do, *words = "\n".join(texts).split()
    if do == "steps":
        return {"do": do, "gate": words[0], "texts": words[1:]}
    if do in ("release", "forget"):
        return {"do": do, "name": words[0]}
    return {"do": do, "texts": [" ".join(words)]}


def _heard(context: Any) -> str:
    texts = _texts(context.message)
    heard = {"texts": texts, "task": context.task_id, "context": context.context_id}
    return json.dumps(heard)


def _texts(message: Any) -> list[str]:
    """Return the texts of a message's parts, of either version of the A2A SDK."""
    return [str(getattr(part, "root", part).text) for part in message.parts]


def _text_part(text: str) -> Any:
    """Return a part of either version of the A2A SDK."""
    try:
        from a2a.helpers import new_text_part
    except ImportError:  # below 1.0
        from a2a import types

        older: Any = types
        return older.Part(root=older.TextPart(text=text))
    return new_text_part(text)


def _message(*texts: str) -> Any:
    """Return an agent's message of either version of the A2A SDK."""
    try:
        from a2a.helpers import new_text_message
    except ImportError:  # below 1.0
        from a2a import utils

        older: Any = utils
        message = older.new_agent_text_message(texts[0])
    else:
        message = new_text_message(texts[0])
    message.parts.extend(_text_part(text) for text in texts[1:])
    return message
