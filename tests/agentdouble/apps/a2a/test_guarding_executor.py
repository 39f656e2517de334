"""Executors that misbehave do not break the platform; each of these once hung or leaked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import Artifact, Task, TaskState, TaskStatus, TaskStatusUpdateEvent
from a2a.utils.errors import TaskNotCancelableError

from agentdouble import A2AApp
from tests.agentdouble.apps.a2a.wire import Wire, kinds, reply_of, talk

Turn = Callable[[RequestContext, EventQueue, TaskUpdater], Awaitable[None]]

COMPLETED = "TASK_STATE_COMPLETED"
FAILED = "TASK_STATE_FAILED"
CANCELED = "TASK_STATE_CANCELED"
SECRET = "the password is swordfish"


def playing(script: Turn, **settings: Any) -> A2AApp:
    """Return an application whose executor does this in each turn, without a cancel."""
    app = A2AApp("playing", **settings)

    @app.agent_executor(runner="echo")
    class Playing(AgentExecutor):
        async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
            updater = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
            await script(context, event_queue, updater)

    return app


async def silent(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
    pass


async def status_first(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
    await updater.start_work()
    await updater.complete()


async def artifact_first(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
    await updater.add_artifact([new_text_part("a")], artifact_id="one", append=True)
    await updater.add_artifact([new_text_part("b")], artifact_id="one", append=True)


async def after_the_end(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
    await updater.complete()
    late = TaskStatus(state=TaskState.TASK_STATE_WORKING)
    await queue.enqueue_event(
        TaskStatusUpdateEvent(task_id=context.task_id, context_id=context.context_id, status=late)
    )
    await queue.enqueue_event(new_text_message("late"))


async def raises(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
    raise RuntimeError(SECRET)


async def raises_later(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
    await updater.start_work()
    raise RuntimeError(SECRET)


async def exits(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
    raise SystemExit(3)


async def cancels_itself(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
    raise asyncio.CancelledError


async def without_an_end(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
    await updater.start_work()


async def no_event(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
    await queue.enqueue_event("just text")  # type: ignore[arg-type]


async def message_in_task(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
    await updater.start_work()
    await queue.enqueue_event(new_text_message("thinking"))


async def two_messages(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
    await queue.enqueue_event(new_text_message("one"))
    await queue.enqueue_event(new_text_message("two"))


async def one_message(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
    await queue.enqueue_event(new_text_message("alone"))


async def message_then_raises(
    context: RequestContext, queue: EventQueue, updater: TaskUpdater
) -> None:
    await queue.enqueue_event(new_text_message("before"))
    raise RuntimeError(SECRET)


async def task_again(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
    assert context.message is not None
    await queue.enqueue_event(new_task_from_user_message(context.message))
    done = Task(id="another", context_id="another")
    done.status.state = TaskState.TASK_STATE_COMPLETED
    done.artifacts.append(Artifact(artifact_id="x", parts=[new_text_part("result")]))
    await queue.enqueue_event(done)


async def bare_task(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
    await queue.enqueue_event(Task(id="wrong", context_id="wrong"))


async def for_ever(context: RequestContext, queue: EventQueue, updater: TaskUpdater) -> None:
    await updater.start_work()
    await asyncio.Event().wait()


STREAMS: list[tuple[Turn, list[str]]] = [
    (status_first, ["submitted", "working", "completed"]),
    (artifact_first, ["submitted", "artifactUpdate", "artifactUpdate", "completed"]),
    (after_the_end, ["submitted", "completed"]),
    (without_an_end, ["submitted", "working", "completed"]),
    (message_in_task, ["submitted", "working", "working", "completed"]),
    (two_messages, ["message"]),
    (one_message, ["message"]),
    (task_again, ["submitted", "artifactUpdate", "completed"]),
    (bare_task, ["working", "completed"]),
    (raises, ["submitted", "failed"]),
    (raises_later, ["submitted", "working", "failed"]),
    (exits, ["submitted", "failed"]),
    (cancels_itself, ["submitted", "failed"]),
    (no_event, ["submitted", "failed"]),
    (message_then_raises, ["message"]),
    (silent, ["error"]),
]


@pytest.mark.parametrize(
    ("script", "expected"), STREAMS, ids=[case.__name__ for case, _ in STREAMS]
)
def test_stream_has_only_events_that_the_protocol_allows(script: Turn, expected: list[str]) -> None:
    """A task first, an end last, or a single message. Sent events are stored."""

    async def conversation(wire: Wire) -> None:
        assert expected == kinds(await wire.stream())
        tasks = (await wire.rpc("ListTasks", {}))["result"]["tasks"]
        if expected[-1] in ("completed", "failed"):
            (task,) = tasks
            assert f"TASK_STATE_{expected[-1].upper()}" == task["status"]["state"]
            hidden = "The agent failed. The application's log says why."
            assert (hidden if expected[-1] == "failed" else "") == reply_of(task)

    talk(playing(script), conversation)


def test_executor_without_events_is_an_error() -> None:
    """-32006, and a failed task; the SDK alone waits forever."""

    async def conversation(wire: Wire) -> None:
        error = (await wire.send())["error"]
        assert (-32006, "The agent ended its turn without an event.") == (
            error["code"],
            error["message"],
        )
        listed = (await wire.rpc("ListTasks", {}))["result"]["tasks"]
        assert [FAILED] == [task["status"]["state"] for task in listed]

    talk(playing(silent), conversation)


def test_exception_text_is_shown_with_show_errors() -> None:
    """Nowhere by default, in the task's status with show_errors."""

    async def conversation(wire: Wire) -> str:
        return reply_of((await wire.send())["task"])

    assert SECRET not in talk(playing(raises), conversation)
    assert f"RuntimeError: {SECRET}" == talk(playing(raises, show_errors=True), conversation)


async def _started(wire: Wire) -> dict[str, Any]:
    """Return a task whose turn is running."""
    params = {**_message(), "configuration": {"returnImmediately": True}}
    task: dict[str, Any] = (await wire.rpc("SendMessage", params))["result"]["task"]
    return task


def _message() -> dict[str, Any]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "go"}]}}


Cancel = Callable[[Any, RequestContext, EventQueue], Awaitable[None]]


def canceling(cancel: Cancel, **settings: Any) -> A2AApp:
    app = A2AApp("canceling", **settings)

    @app.agent_executor(runner="echo")
    class Canceling(AgentExecutor):
        async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
            updater = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
            await for_ever(context, event_queue, updater)

        async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
            await cancel(self, context, event_queue)

    return app


@pytest.mark.parametrize("error", [RuntimeError(SECRET), NotImplementedError()], ids=repr)
def test_cancel_that_raises_still_cancels(error: Exception) -> None:
    """The exception's text is only logged."""

    async def fails(self: Any, context: RequestContext, queue: EventQueue) -> None:
        raise error

    async def conversation(wire: Wire) -> None:
        task = await _started(wire)
        answer = await wire.rpc("CancelTask", {"id": task["id"]})
        assert CANCELED == answer["result"]["status"]["state"]
        assert SECRET not in str(answer)

    talk(canceling(fails), conversation)


def test_executor_s_cancel_decides_the_final_state() -> None:
    """Its events become part of the task."""

    async def says(self: Any, context: RequestContext, queue: EventQueue) -> None:
        updater = TaskUpdater(queue, context.task_id or "", context.context_id or "")
        await updater.add_artifact([new_text_part("half of it")], artifact_id="a")
        await updater.cancel(new_text_message("as you wish"))

    async def conversation(wire: Wire) -> None:
        task = await _started(wire)
        canceled = (await wire.rpc("CancelTask", {"id": task["id"]}))["result"]
        assert (CANCELED, "as you wish") == (canceled["status"]["state"], reply_of(canceled))
        assert [{"artifactId": "a", "parts": [{"text": "half of it"}]}] == canceled["artifacts"]

    talk(canceling(says), conversation)


def test_task_runs_on_if_its_executor_refuses_to_cancel() -> None:
    """-32002, and the state is unchanged; the SDK alone fails the task."""

    async def refuses(self: Any, context: RequestContext, queue: EventQueue) -> None:
        raise TaskNotCancelableError("too late")

    async def conversation(wire: Wire) -> None:
        task = await _started(wire)
        error = (await wire.rpc("CancelTask", {"id": task["id"]}))["error"]
        assert (-32002, "too late") == (error["code"], error["message"])
        assert (await wire.task(task["id"]))["status"]["state"] in (
            "TASK_STATE_SUBMITTED",
            "TASK_STATE_WORKING",
        )

    talk(canceling(refuses), conversation)


def test_application_without_an_executor_reports_it() -> None:
    """It has a card, and answers messages with -32004."""

    async def conversation(wire: Wire) -> None:
        assert 200 == (await wire.http.get("/.well-known/agent-card.json")).status_code
        error = (await wire.send())["error"]
        assert (
            -32004,
            "The application has no executor. Register a class with @app.agent_executor.",
        ) == (error["code"], error["message"])

    talk(A2AApp(), conversation)
