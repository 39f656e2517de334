"""Executors that could hang a server or corrupt its store: every call is answered in time."""

from __future__ import annotations

import threading

import pytest
from a2a.helpers import new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import Artifact, Part, Role, Task
from google.protobuf.struct_pb2 import Value

from agentdouble import A2AApp
from tests.agentdouble.apps.a2a.test_guarding_executor import FAILED, Turn, playing
from tests.agentdouble.apps.a2a.wire import Wire, kinds, reply_of, talk

CANCELED = "TASK_STATE_CANCELED"
COMPLETED = "TASK_STATE_COMPLETED"
LOG = "The agent failed. The application's log says why."


def raising(error: BaseException) -> Turn:
    async def script(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
        await updater.start_work()
        raise error

    return script


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), GeneratorExit(), StopIteration(), StopAsyncIteration(), BaseException()],
    ids=repr,
)
def test_exception_of_any_kind_fails_only_its_task(error: BaseException) -> None:
    """Even one that would end a loop or a generator; the next message is answered."""

    async def conversation(wire: Wire) -> None:
        for _ in range(2):
            task = (await wire.send())["task"]
            assert (FAILED, LOG) == (task["status"]["state"], reply_of(task))
        assert "failed" == kinds(await wire.stream())[-1]

    talk(playing(raising(error)), conversation)


def test_executor_that_blocks_forever_fails_at_its_limit() -> None:
    """Even though its loop is blocked."""
    release = threading.Event()

    async def blocks(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
        release.wait(30)

    async def conversation(wire: Wire) -> None:
        try:
            task = (await wire.send())["task"]
        finally:
            release.set()
        assert (FAILED, "It did not end within 0.2 s.") == (task["status"]["state"], reply_of(task))

    talk(playing(blocks, turn_limit_s=0.2), conversation)


def test_blocking_cancel_is_not_waited_for() -> None:
    """Its limit holds even though its loop is blocked."""
    release = threading.Event()
    app = A2AApp("blocking", cancel_limit_s=0.1)

    @app.agent_executor(runner="echo")
    class Blocking(AgentExecutor):
        async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
            updater = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
            await updater.requires_input()

        async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
            release.wait(30)

    async def conversation(wire: Wire) -> None:
        id_ = (await wire.send())["task"]["id"]
        try:
            canceled = (await wire.rpc("CancelTask", {"id": id_}))["result"]
        finally:
            release.set()
        assert CANCELED == canceled["status"]["state"]

    talk(app, conversation)


def test_flood_of_events_completes() -> None:
    """A thousand chunks of one artifact are stored in order."""

    async def floods(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
        for number in range(1000):
            await updater.add_artifact([new_text_part(f"{number} ")], artifact_id="a", append=True)

    async def conversation(wire: Wire) -> None:
        events = await wire.stream()
        assert ["submitted", *["artifactUpdate"] * 1000, "completed"] == kinds(events)

    talk(playing(floods), conversation)


async def no_number(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
    await updater.add_artifact([Part(data=Value(number_value=float("nan")))])


async def no_number_in_a_task(
    context: RequestContext, queue: EventQueue, updater: TaskUpdater
) -> None:
    task = Task(id=context.task_id, context_id=context.context_id)
    task.artifacts.append(
        Artifact(artifact_id="a", parts=[Part(data=Value(number_value=float("-inf")))])
    )
    await queue.enqueue_event(task)


async def no_number_in_a_message(
    context: RequestContext, queue: EventQueue, updater: TaskUpdater
) -> None:
    message = new_text_message("x", role=Role.ROLE_AGENT)
    message.metadata["n"] = float("nan")
    await queue.enqueue_event(message)


@pytest.mark.parametrize(
    "script",
    [no_number, no_number_in_a_task, no_number_in_a_message],
    ids=lambda function: function.__name__,
)
def test_unserializable_event_fails_the_task(script: Turn) -> None:
    """JSON has no NaN; tasks and lists can be read afterwards."""

    async def conversation(wire: Wire) -> None:
        task = (await wire.send())["task"]
        assert (FAILED, LOG) == (task["status"]["state"], reply_of(task))
        assert task["status"] == (await wire.task(task["id"]))["status"]
        listed = await wire.rpc("ListTasks", {"includeArtifacts": True})
        assert [task["id"]] == [task["id"] for task in listed["result"]["tasks"]]
        assert "failed" == kinds(await wire.stream())[-1]

    talk(playing(script), conversation)
