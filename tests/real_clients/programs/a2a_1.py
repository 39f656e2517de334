"""A conversation of the official client, a2a-sdk 1.x, over each binding."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from a2a.client import Client, ClientCallContext, ClientConfig, create_client
from a2a.helpers import new_text_message
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Hold the whole conversation over each binding; return the outcome of each part."""
    servers, hook = facts["a2a"], facts["hook"]
    url = servers["application"]["url"]
    outcome = {
        f"1.0 {binding}": await converse_over(url, binding, hook)
        for binding in ("JSONRPC", "HTTP+JSON")
    }
    return {**outcome, "keys": {"runtime": await _echo(servers["runtime"])}}


async def _echo(server: dict[str, Any]) -> str:
    """Return an application's answer to a caller with these headers."""
    context = ClientCallContext(service_parameters=server["headers"])
    async with httpx.AsyncClient(headers=server["headers"], timeout=60, trust_env=False) as http:
        config = ClientConfig(streaming=False, httpx_client=http)
        async with await create_client(server["url"], config) as client:
            sent = client.send_message(_request("hello"), context=context)
            (answer,) = [event async for event in sent]
            return _texts(answer.task)


@asynccontextmanager
async def client_of(url: str, binding: str, streaming: bool, hook: str) -> AsyncIterator[Client]:
    """Return a client that has read the card."""
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        config = ClientConfig(
            streaming=streaming,
            httpx_client=http,
            supported_protocol_bindings=[binding],
            push_notification_config=TaskPushNotificationConfig(url=hook) if hook else None,
        )
        async with await create_client(url, config) as client:
            yield client


async def converse_over(url: str, binding: str, hook: str) -> dict[str, Any]:
    """Hold the whole conversation; return the outcome of each part."""
    outcome: dict[str, Any] = {}
    async with client_of(url, binding, False, "") as client:
        outcome["message"] = _text_of(await _task(client, "hello"))
        paused = await _task(client, "ask")
        outcome["asked"] = [_state(paused.status), _text_of(paused)]
        done = await _task(client, "this", paused)
        outcome["continued"] = [done.id == paused.id, _state(done.status), _text_of(done)]
        failed = await _task(client, "fail")
        outcome["failed"] = [_state(failed.status), _text_of(failed)]
        waiting = await _task(client, "ask")
        canceled = await client.cancel_task(CancelTaskRequest(id=waiting.id))
        outcome["canceled"] = _state(canceled.status)
        outcome["errors"] = [
            await _error(client.cancel_task(CancelTaskRequest(id=waiting.id))),
            await _error(client.get_task(GetTaskRequest(id="nobody's"))),
        ]
        listed = await client.list_tasks(ListTasksRequest(context_id=paused.context_id))
        outcome["listed"] = [task.id for task in listed.tasks] == [paused.id]
        outcome |= await _configure(client, (await _task(client, "ask")).id, hook)
    async with client_of(url, binding, True, hook) as client:
        events = [event async for event in client.send_message(_request("work"))]
        outcome["streamed"] = [_kind(event) for event in events]
        stored = await client.get_task(GetTaskRequest(id=events[0].task.id))
        outcome["artifact"] = "".join(part.text for part in stored.artifacts[0].parts)
    async with client_of(url, binding, True, "") as client:
        outcome["resumed"] = await _resume(client)
    return outcome


async def _configure(client: Client, task: str, hook: str) -> dict[str, Any]:
    """Create, read, list and delete a task's push configuration."""
    config = TaskPushNotificationConfig(task_id=task, id="mine", url=hook)
    created = await client.create_task_push_notification_config(config)
    ids = {"task_id": task, "id": "mine"}
    read = await client.get_task_push_notification_config(
        GetTaskPushNotificationConfigRequest(**ids)
    )
    query = ListTaskPushNotificationConfigsRequest(task_id=task)
    before = await client.list_task_push_notification_configs(query)
    await client.delete_task_push_notification_config(
        DeleteTaskPushNotificationConfigRequest(**ids)
    )
    after = await client.list_task_push_notification_configs(query)
    counted = [len(before.configs), len(after.configs)]
    return {"config": [created.id, read.url == hook], "configs": counted}


async def _resume(client: Client) -> list[str]:
    """Drop a stream midway and resume it; return the kinds of its last events."""
    stream = client.send_message(_request("hold"))
    task = (await stream.__anext__()).task
    await stream.aclose()  # type: ignore[attr-defined]
    kinds: list[str] = []
    async for event in client.subscribe(SubscribeToTaskRequest(id=task.id)):
        if not kinds:
            [_ async for _ in client.send_message(_request("go"))]
        kinds.append(_kind(event))
    return kinds[-2:]


def _request(text: str, task: Task | None = None) -> SendMessageRequest:
    message = new_text_message(text, role=Role.ROLE_USER)
    if task is not None:
        message.task_id, message.context_id = task.id, task.context_id
    return SendMessageRequest(message=message)


async def _task(client: Client, text: str, task: Task | None = None) -> Task:
    (answer,) = [event async for event in client.send_message(_request(text, task))]
    return answer.task


async def _error(call: Any) -> str:
    try:
        await call
    except (TaskNotCancelableError, TaskNotFoundError) as error:
        return type(error).__name__
    return "none"


def _text_of(task: Task) -> str:
    return "".join(part.text for part in task.status.message.parts)


def _texts(task: Task) -> str:
    text = "".join(part.text for part in task.status.message.parts)
    return text or "".join(part.text for artifact in task.artifacts for part in artifact.parts)


def _state(status: Any) -> str:
    return str(TaskState.Name(status.state)).removeprefix("TASK_STATE_").lower()


def _kind(event: StreamResponse) -> str:
    kind = event.WhichOneof("payload")
    if kind == "artifact_update":
        return "artifact"
    return _state(event.task.status if kind == "task" else event.status_update.status)
