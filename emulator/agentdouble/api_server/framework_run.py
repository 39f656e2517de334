"""Runs of agents whose framework has its own runner, which stores the events that it makes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Sequence
from itertools import groupby

from agentdouble.agents.agent import Agent
from agentdouble.agents.framework import Framework, FrameworkEvent, RunEvent, RunInput
from agentdouble.agents.loops import Turn
from agentdouble.api_server.agent_run import (
    Appended,
    Finished,
    Item,
    Queries,
    Query,
    run_framework,
)
from agentdouble.api_server.bodies import RunRequest
from agentdouble.api_server.framework_host import RunHost
from agentdouble.api_server.run import Run, Send
from agentdouble.api_server.run_services import RunServices
from agentdouble.api_server.stores import SessionKey, StoredEvent, StoredSession
from agentdouble.api_server.wire import to_wire
from agentdouble.application_loop import CrossLoopQueue

ABORT_WITHIN_S = 2.0
# Events that come in quick succession reach the client together: waking the server's loop for each
# costs more than the rest of what we do for it.
LINGER_S = 0.004
_log = logging.getLogger(__name__)


class FrameworkRun(Run):
    """One run of a framework's runner, over the server's sessions."""

    def __init__(
        self,
        services: RunServices,
        framework: Framework,
        agent: Agent,
        key: SessionKey,
        body: RunRequest,
        *,
        streaming: bool,
    ) -> None:
        super().__init__(services, agent, key, body, streaming=streaming)
        self._framework = framework
        self._host: RunHost | None = None
        self._left: deque[Item] = deque()  # taken from the queue and not handled yet

    async def _answer(self, session: StoredSession, send: Send) -> None:
        """Let the runner answer the message; it stores the message, too."""
        opened = await self._services.histories.open(self.key, session)
        if opened is None:
            raise self._not_found()
        queue: CrossLoopQueue[Item] = CrossLoopQueue(linger_s=LINGER_S)
        queries = Queries(queue, self.key.app)
        host = self._host = RunHost(self._services, self._framework, queue, queries, opened)
        await self._follow(
            lambda: run_framework(self._framework, self._asked(), host, queue),
            queue,
            queries,
            send,
        )

    async def _handle(self, items: Sequence[Item], send: Send) -> bool:
        """Store and send events, and answer queries; return whether the agent has finished."""
        left = self._left = deque(items)
        while left:
            appended: list[Appended] = []
            sendable: list[RunEvent] = []
            while left and isinstance(left[0], (Appended, RunEvent)):
                item = left.popleft()
                if isinstance(item, Appended):
                    appended.append(item)
                elif isinstance(item, RunEvent):
                    sendable.append(item)
            await self._store_and_send(appended, sendable, send)
            last = left.popleft() if left else None
            if isinstance(last, Query):
                await last.reply()
            elif isinstance(last, Finished):
                self._raise_error_of(last)
                return True
        return False

    async def _store_and_send(
        self, appended: Sequence[Appended], sendable: Sequence[RunEvent], send: Send
    ) -> None:
        for key, items in groupby(appended, lambda one: one.key):
            await self._append(key, [item.event for item in items])
        if sendable:
            await send(sendable)

    async def _append(self, key: SessionKey, events: Sequence[FrameworkEvent]) -> None:
        stored = [
            StoredEvent(one.id, one.timestamp, one.json, one.state_delta, one.private)
            for one in events
        ]
        revision = await self._store.append(key, stored)
        if revision is None:
            raise self._not_found()
        self._services.histories.add_stored(key, revision, events)

    async def _abort(self, turn: Turn, queue: CrossLoopQueue[Item]) -> None:
        """Let the runner store that the client disconnected, as it does itself."""
        host = self._host
        assert host is not None
        turn.call_soon(host.aborted.set)
        turn.cancel()
        try:
            await asyncio.wait_for(self._drain(queue), ABORT_WITHIN_S)
        except asyncio.TimeoutError:
            _log.warning("The agent of %r goes on after its client has disconnected.", self.key.app)

    async def _drain(self, queue: CrossLoopQueue[Item]) -> None:
        """Store what the runner still appends, until it has finished."""

        async def nobody(_events: Sequence[RunEvent]) -> None:
            return

        with contextlib.suppress(Exception):
            finished = await self._handle(list(self._left), nobody)  # those after what was sent
            while not finished:
                finished = await self._handle(await queue.take(), nobody)

    def _asked(self) -> RunInput:
        body, message = self._body, self._body.new_message
        return RunInput(
            user=self.key.user,
            session=self.key.id,
            message=None if message is None else to_wire(message),
            streaming=self._streaming,
            invocation_id=body.invocation_id,
            state_delta=body.state_delta,
            custom_metadata=body.custom_metadata,
            service_tier=body.service_tier,
        )
