"""Runs of agents whose framework has its own runner."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Sequence
from itertools import groupby

from agentdouble.agents.framework import Framework, FrameworkEvent, RunEvent, RunInput
from agentdouble.agents.loops import LoopTask
from agentdouble.api_server import agent_run
from agentdouble.api_server.models import RunRequest, to_wire
from agentdouble.api_server.run import Run, RunServices, Send
from agentdouble.api_server.run_host import RunHost
from agentdouble.api_server.stores import SessionKey, StoredEvent, StoredSession
from agentdouble.server.cross_loop_queue import CrossLoopQueue

_log = logging.getLogger(__name__)

ABORT_WITHIN_S = 2.0
# Events in quick succession reach the client together, because waking the server's loop for each
# costs more than everything else.
LINGER_S = 0.004


class FrameworkRun(Run):
    """One run of a framework's runner, over the server's sessions."""

    def __init__(
        self,
        services: RunServices,
        framework: Framework,
        key: SessionKey,
        body: RunRequest,
        *,
        streaming: bool,
    ) -> None:
        super().__init__(services, key, body, streaming=streaming)
        self._framework = framework
        self._host: RunHost | None = None
        # items from the queue that are not handled yet
        self._pending: deque[agent_run.Item] = deque()

    async def _answer(self, session: StoredSession, send: Send) -> None:
        """Let the runner answer the message; it stores the message, too."""
        opened = await self._services.histories.open(self.key, session)
        if opened is None:
            raise self._not_found()
        queue = self._queue(LINGER_S)
        queries = agent_run.Queries(queue, self.key.app)
        host = self._host = RunHost(self._services, self._framework, queue, queries, opened)
        await self._follow(
            lambda: agent_run.run_framework(self._framework, self._input(), host, queue),
            queue,
            queries,
            send,
        )

    async def _handle(self, items: Sequence[agent_run.Item], send: Send) -> bool:
        """Store and send events, and answer queries; return whether the agent has finished."""
        pending = self._pending = deque(items)
        while pending:
            appended: list[agent_run.Appended] = []
            sendable: list[RunEvent] = []
            while pending and isinstance(pending[0], (agent_run.Appended, RunEvent)):
                item = pending.popleft()
                if isinstance(item, agent_run.Appended):
                    appended.append(item)
                elif isinstance(item, RunEvent):
                    sendable.append(item)
            for key, events in groupby(appended, lambda event: event.key):
                await self._append(key, [item.event for item in events])
            if sendable:
                await send(sendable)
            last = pending.popleft() if pending else None
            if isinstance(last, agent_run.Query):
                await last.reply()
            elif isinstance(last, agent_run.Finished):
                self._raise_error_of(last)
                return True
        return False

    async def _append(self, key: SessionKey, events: Sequence[FrameworkEvent]) -> None:
        stored = [
            StoredEvent(event.id, event.timestamp, event.json, event.state_delta, event.private)
            for event in events
        ]
        revision = await self._store.append(key, stored)
        if revision is None:
            raise self._not_found()
        self._services.histories.add_stored(key, revision, events)

    async def _abort(self, task: LoopTask, queue: CrossLoopQueue[agent_run.Item]) -> None:
        """Let the runner store the event of the disconnected client itself."""
        host = self._host
        assert host is not None
        task.call_soon(host.aborted.set)
        task.cancel()
        try:
            await asyncio.wait_for(self._drain(queue), ABORT_WITHIN_S)
        except asyncio.TimeoutError:
            _log.warning("The agent of %r continues after its client disconnected.", self.key.app)

    async def _drain(self, queue: CrossLoopQueue[agent_run.Item]) -> None:
        """Store the runner's further events until it has finished."""

        async def ignore(_events: Sequence[RunEvent]) -> None:
            return

        with contextlib.suppress(Exception):
            finished = await self._handle(list(self._pending), ignore)  # those after the sent ones
            while not finished:
                finished = await self._handle(await queue.take(), ignore)

    def _input(self) -> RunInput:
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
