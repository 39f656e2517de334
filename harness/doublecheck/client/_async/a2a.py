"""A client of an A2A application."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from doublecheck.client._async.connection import AsyncConnection, events
from doublecheck.values.agents import A2aAnswer
from doublecheck.values.executions import checked
from doublecheck.wire import a2a


class AsyncA2aClient:
    """A client of one A2A application, in the version that its card declares.

    Every method raises RefusedError, with a JSON-RPC code if there is one (-32001: the task does
    not exist), and AnswerError for an answer that is not A2A.
    """

    def __init__(self, connection: AsyncConnection, path: str) -> None:
        self._connection = connection
        self._path = path
        self._agent: a2a.A2aAgent | None = None

    # sync only: @property
    async def card(self) -> Mapping[str, Any]:
        """Return the application's card, unchanged."""
        agent = await self._known()
        return agent.card

    async def send(
        self,
        text: str,
        *,
        context_id: str | None = None,
        task_id: str | None = None,
        check: bool = False,
    ) -> A2aAnswer:
        """Send a message and wait for the answer. The ids continue an earlier conversation.

        With ``check`` a task that failed or was rejected raises ResultError.
        """
        call = a2a.send(await self._known(), text, contextId=context_id, taskId=task_id)
        return checked(await self._connection.call(call), check)

    async def stream(
        self,
        text: str,
        *,
        context_id: str | None = None,
        task_id: str | None = None,
        check: bool = False,
    ) -> AsyncGenerator[A2aAnswer]:
        """Send a message and yield the answers as they arrive; ``check`` as for ``send()``."""
        request = a2a.stream(await self._known(), text, contextId=context_id, taskId=task_id)
        async with (
            self._connection.streaming(request) as response,
            events(response, a2a.refuse_no_stream) as arriving,
        ):
            async for event in arriving:
                yield checked(a2a.read_event(response, event.data), check)

    async def task(self, task_id: str) -> A2aAnswer:
        """Return the current state of a task."""
        return await self._connection.call(a2a.task(await self._known(), task_id))

    async def cancel(self, task_id: str) -> A2aAnswer:
        """Cancel a task."""
        return await self._connection.call(a2a.cancel(await self._known(), task_id))

    async def _known(self) -> a2a.A2aAgent:
        if self._agent is None:
            self._agent = await self._connection.call(a2a.card(self._connection.target, self._path))
        return self._agent

    def __repr__(self) -> str:
        return f"<AsyncA2aClient of {self._connection.target.at('a2a')}{self._path}>"
