"""Runs of agents that are functions: the server makes their events of what they yield."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from agentdouble.agents.agent import Agent, Message, Part, Session
from agentdouble.agents.framework import RunEvent
from agentdouble.agents.loops import LoopTask
from agentdouble.api_server import agent_run, events
from agentdouble.api_server.events import EventBuilder
from agentdouble.api_server.json_text import dumps, loads
from agentdouble.api_server.models import RunRequest, to_wire
from agentdouble.api_server.run import Run, RunServices, Send
from agentdouble.api_server.stores import SessionKey, StoredEvent, StoredSession
from agentdouble.server.cross_loop_queue import CrossLoopQueue


class FunctionRun(Run):
    """One run of an agent that is a function."""

    def __init__(
        self,
        services: RunServices,
        agent: Agent,
        key: SessionKey,
        body: RunRequest,
        *,
        streaming: bool,
    ) -> None:
        super().__init__(services, key, body, streaming=streaming)
        self._agent = agent
        self._invocation_id = body.invocation_id or f"e-{uuid.uuid4()}"
        self._events = EventBuilder(
            invocation_id=self._invocation_id,
            author=agent.name,
            streaming=streaming,
            custom_metadata=body.custom_metadata,
            now=services.sessions.now,
        )

    async def _answer(self, session: StoredSession, send: Send) -> None:
        """Store the user's message and let the agent answer it."""
        message = self._message()
        delta = self._body.state_delta or {}
        await self._save([self._events.of_user(message, delta)])
        queue = self._queue()
        queries = agent_run.Queries(queue, self.key.app)
        session_copy = self._session({**session.state, **delta}, queries)
        await self._follow(
            lambda: agent_run.run_agent(self._agent, self.key.app, message, session_copy, queue),
            queue,
            queries,
            send,
        )

    async def _abort(self, task: LoopTask, queue: CrossLoopQueue[agent_run.Item]) -> None:
        """Store that the client disconnected."""
        await self._store.append(self.key, [events.stored(self._events.of_abort())])

    async def _handle(self, items: Sequence[agent_run.Item], send: Send) -> bool:
        """Send the yielded events and answer the queries; return whether the agent has finished."""
        ready: list[dict[str, Any]] = []
        for item in items:
            if isinstance(item, agent_run.Query):
                # The answer to a query must include what the agent yielded before the query.
                await self._publish(ready, send)
                ready = []
                await item.reply()
            elif isinstance(item, agent_run.Finished):
                if item.error is None:
                    ready += self._events.of_end(item)
                await self._publish(ready, send)
                self._raise_error_of(item)
                return True
            elif isinstance(item, agent_run.Yielded):
                ready += self._events.of_yielded(item)
        await self._publish(ready, send)
        return False

    async def _publish(self, ready: Sequence[dict[str, Any]], send: Send) -> None:
        if ready:
            await send(await self._save(ready))

    async def _save(self, built: Sequence[dict[str, Any]]) -> list[RunEvent]:
        """Store the events that are not partial; return all events, ready to be sent."""
        try:
            stored, sendable = _serialized(built)
        except TypeError as error:  # the agent gave a value that is not JSON
            self._agent_error = error
            raise
        if stored and not await self._store.append(self.key, stored):
            raise self._not_found()
        return sendable

    def _message(self) -> Message:
        """Return the user's message; raise ValueError like the real server's run."""
        content, where = self._body.new_message, f"Session: {self.key.id}, User: {self.key.user}"
        if content is None and self._body.invocation_id:
            raise ValueError(f"Running an agent requires a new_message or a resumable app. {where}")
        if content is None:
            raise ValueError(
                "Running an agent requires either a new_message or an invocation_id to resume a "
                f"previous invocation. {where}"
            )
        if not content.parts:
            raise ValueError("No parts in the new_message.")
        if any(part.function_call for part in content.parts):
            raise ValueError("User message cannot contain function calls.")
        return Message(tuple(Part(to_wire(part)) for part in content.parts))

    def _session(self, state: dict[str, Any], queries: agent_run.Queries) -> Session:
        return Session(
            app_name=self.key.app,
            user_id=self.key.user,
            id=self.key.id,
            invocation_id=self._invocation_id,
            state=loads(dumps(state)) if state else {},
            streaming=self._streaming,
            backend=agent_run.SessionBackend(
                self.key, self._store, self._services.artifacts, queries
            ),
        )


def _serialized(built: Sequence[dict[str, Any]]) -> tuple[list[StoredEvent], list[RunEvent]]:
    """Return the events to store, and all events ready to be sent."""
    stored: list[StoredEvent] = []
    sendable: list[RunEvent] = []
    for event in built:
        if event.get("partial"):
            sendable.append(RunEvent(dumps(event), artifacts=False))
            continue
        # An event is serialized once, when it is stored, and histories are put together from that
        # JSON. So a run costs the same for a history of any length.
        stored.append(events.stored(event))
        sendable.append(RunEvent(stored[-1].json, bool(event["actions"]["artifactDelta"])))
    return stored, sendable
