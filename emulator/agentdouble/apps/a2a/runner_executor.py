"""The executor of a class that does not define ``execute``: the runner's agent answers."""

from __future__ import annotations

import base64
import json
import uuid
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from a2a.helpers import new_data_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import Message as A2AMessage
from a2a.types import Part as A2APart
from a2a.types import Role, Task, TaskState, TaskStatus
from google.protobuf.json_format import MessageToDict

from agentdouble.agents.agent import Agent, AgentOutput, Event, Message, Part, Session, WireEvent
from agentdouble.agents.directory import AgentsDirectory
from agentdouble.apps.adapters import agent_of
from agentdouble.core.code_tool import DEFAULT_USER

LIMIT = 1000  # contexts of an application; above it, the least recently used one is forgotten


@dataclass
class RunnerConversation:
    """The memory of a session, a ``Backend`` of ``agentdouble.agents.agent``."""

    state: dict[str, Any] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    artifacts_by_name: dict[str, list[Part]] = field(default_factory=dict)

    async def history(self) -> tuple[Event, ...]:
        """Return the events so far, oldest first."""
        return tuple(self.events)

    async def save_artifact(self, name: str, part: Part) -> int:
        """Store a new version of an artifact and return its number, counted from 0."""
        versions = self.artifacts_by_name.setdefault(name, [])
        versions.append(part)
        return len(versions) - 1

    async def load_artifact(self, name: str, version: int | None) -> Part | None:
        """Return a version of an artifact, the newest by default, or None if there is none."""
        versions = self.artifacts_by_name.get(name, [])
        if version is None:
            return versions[-1] if versions else None
        return versions[version] if 0 <= version < len(versions) else None

    async def artifacts(self) -> tuple[str, ...]:
        """Return the names of the artifacts, sorted."""
        return tuple(sorted(self.artifacts_by_name))


class Conversations:
    """The conversations of an application, in memory."""

    def __init__(self) -> None:
        self._by_context: OrderedDict[tuple[str, str], RunnerConversation] = OrderedDict()

    def of(self, user: str, context_id: str) -> RunnerConversation:
        """Return a caller's conversation; start it if it is new."""
        conversation = self._by_context.setdefault((user, context_id), RunnerConversation())
        self._by_context.move_to_end((user, context_id))
        while len(self._by_context) > LIMIT:
            self._by_context.popitem(last=False)
        return conversation


ANSWER = "answer"  # the name of the artifact


class RunnerExecutor(AgentExecutor):
    """Lets an agent answer: sends its content as an artifact and its tool calls as statuses.

    ``runner`` is any object that ``adapters.agent_of`` accepts.
    """

    runner: Any = None
    _app_name = "agent"
    _directory: AgentsDirectory | None = None
    _conversations: Conversations | None = None

    def hosted(self, app_name: str, directory: AgentsDirectory) -> None:
        """Set the application, and the directory in which a runner's name is looked up."""
        self._app_name = app_name
        self._directory = directory
        self._conversations = Conversations()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Answer the message with the agent (A2A-02)."""
        directory = self._directory or AgentsDirectory()
        agent = await agent_of(self.runner, self._app_name, directory)
        user = context.call_context.user.user_name or DEFAULT_USER
        context_id = context.context_id or ""
        conversations = self._conversations = self._conversations or Conversations()
        turn = _Turn(agent, context, event_queue, conversations.of(user, context_id), user)
        await turn.run()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Do nothing, because the turn is cancelled and the agent with it."""


class _Turn:
    """One message and the agent's answer."""

    def __init__(
        self,
        agent: Agent,
        context: RequestContext,
        queue: EventQueue,
        memory: RunnerConversation,
        user: str,
    ) -> None:
        task_id, context_id = context.task_id or "", context.context_id or ""
        self._agent = agent
        self._asked = context.message or A2AMessage()
        self._new = context.current_task is None
        self._queue = queue
        self._memory = memory
        self._updater = TaskUpdater(queue, task_id, context_id)
        self._session = Session(
            app_name=agent.name,
            user_id=user,
            id=context_id,
            invocation_id=f"e-{uuid.uuid4()}",
            state=memory.state,
            streaming=True,
            backend=memory,
        )
        self._artifact_id = f"{ANSWER}-{uuid.uuid4()}"
        self._begun = False
        self._increments = ""

    async def run(self) -> None:
        await self._open()
        message = to_agent(self._asked)
        self._memory.events.append(Event(message.parts, role="user", author="user"))
        answers = self._agent.run(message, self._session)
        try:
            async for output in answers:
                failure = await self._send(_event(output))
                if failure is not None:
                    await self._updater.failed(failure)
                    return
        finally:
            self._memory.state = dict(self._session.state)
            await answers.aclose()  # type: ignore[attr-defined]
        await self._send_saved()
        await self._updater.complete()

    async def _open(self) -> None:
        if self._new:
            task = Task(
                id=self._updater.task_id,
                context_id=self._updater.context_id,
                status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
                history=[self._asked],
            )
            await self._queue.enqueue_event(task)
        await self._updater.start_work()

    async def _send(self, event: Event) -> A2AMessage | None:
        """Send an event; return the message of the failure if it reports one."""
        self._session.state.update_from(event.state_delta)
        if not event.partial:
            self._memory.events.append(event)
        if event.more.get("errorCode"):
            text = event.more.get("errorMessage") or event.more["errorCode"]
            return self._message([Part.of_text(str(text))])
        calls = [part for part in event.parts if part.function_call or part.function_response]
        if calls:
            await self._updater.update_status(TaskState.TASK_STATE_WORKING, self._message(calls))
        await self._send_content(event, [part for part in event.parts if part not in calls])
        await self._send_saved()
        return None

    async def _send_content(self, event: Event, parts: list[Part]) -> None:
        if event.partial:
            self._increments += event.text
        elif self._increments:  # the text has already been sent in increments
            if event.text == self._increments:
                parts = [part for part in parts if part.text is None]
            self._increments = ""
        if parts:
            await self._updater.add_artifact(
                from_agent(parts),
                artifact_id=self._artifact_id,
                name=ANSWER,
                append=self._begun,
            )
            self._begun = True

    async def _send_saved(self) -> None:
        for name, version in self._session.take_saved().items():
            part = await self._memory.load_artifact(name, version)
            if part is not None:
                await self._updater.add_artifact(from_agent([part]), name=name)

    def _message(self, parts: Iterable[Part]) -> A2AMessage:
        return A2AMessage(
            message_id=str(uuid.uuid4()), role=Role.ROLE_AGENT, parts=from_agent(parts)
        )


def _event(output: AgentOutput) -> Event:
    if isinstance(output, str):
        return Event((Part.of_text(output),))
    if isinstance(output, Part):
        return Event((output,))
    if isinstance(output, WireEvent):
        return Event.from_wire(output.wire)
    return output


def to_agent(message: A2AMessage) -> Message:
    """Convert a caller's message for an agent; data becomes its JSON text."""
    return Message(tuple(_to_agent(part) for part in message.parts))


def from_agent(parts: Iterable[Part]) -> list[A2APart]:
    """Convert an agent's parts to parts of the protocol; a tool call becomes data."""
    return [_from_agent(part) for part in parts]


def _to_agent(part: A2APart) -> Part:
    kind = part.WhichOneof("content")
    if kind == "raw":
        return Part.of_data(part.raw, part.media_type or "application/octet-stream")
    if kind == "url":
        return Part({"fileData": {"fileUri": part.url, "mimeType": part.media_type}})
    if kind == "data":
        return Part.of_text(json.dumps(MessageToDict(part.data), ensure_ascii=False))
    return Part.of_text(part.text)


def _from_agent(part: Part) -> A2APart:
    if part.text is not None:
        return A2APart(text=part.text)
    inline = part.wire.get("inlineData")
    if inline is not None:
        encoded = inline.get("data", "").replace("-", "+").replace("_", "/")
        return A2APart(raw=base64.b64decode(encoded), media_type=inline.get("mimeType", ""))
    file = part.wire.get("fileData")
    if file is not None:
        return A2APart(url=file.get("fileUri", ""), media_type=file.get("mimeType", ""))
    return new_data_part(dict(part.wire))
