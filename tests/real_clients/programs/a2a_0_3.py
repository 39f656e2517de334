"""A conversation of the official client for A2A 0.3, over each transport."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationConfig,
    Role,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TextPart,
)

ERRORS = {-32001: "TaskNotFoundError", -32002: "TaskNotCancelableError"}


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Hold the whole conversation over JSON-RPC; return the outcome of each part."""
    servers, hook = facts["a2a"], facts["hook"]
    url = servers["application"]["url"]
    outcome = {"0.3 JSONRPC": await converse_over(url, "JSONRPC", hook)}
    return {**outcome, "keys": {"runtime": await echo(servers["runtime"])}}


async def echo(server: dict[str, Any]) -> str:
    """Return an application's answer to a caller with these headers."""
    async with httpx.AsyncClient(headers=server["headers"], timeout=20, trust_env=False) as http:
        card = await A2ACardResolver(http, server["url"]).get_agent_card()
        client = ClientFactory(ClientConfig(streaming=False, httpx_client=http)).create(card)
        task = await task_of(client, "hello")
        return text_of(task) or "".join(p.root.text for item in task.artifacts for p in item.parts)


async def converse_over(url: str, transport: str, hook: str) -> dict[str, Any]:
    """Hold the whole conversation; return the outcome of each part."""
    outcome: dict[str, Any] = {}
    async with httpx.AsyncClient(timeout=20, trust_env=False) as http:
        card = await A2ACardResolver(http, url).get_agent_card()

        def client_of(streaming: bool, hook: str = "") -> Any:
            config = ClientConfig(
                streaming=streaming,
                httpx_client=http,
                supported_transports=[transport],
                push_notification_configs=[PushNotificationConfig(url=hook)] if hook else [],
            )
            return ClientFactory(config).create(card)

        client = client_of(streaming=False)
        outcome["message"] = text_of(await task_of(client, "hello"))
        paused = await task_of(client, "ask")
        outcome["asked"] = [state(paused.status), text_of(paused)]
        done = await task_of(client, "this", paused)
        outcome["continued"] = [done.id == paused.id, state(done.status), text_of(done)]
        failed = await task_of(client, "fail")
        outcome["failed"] = [state(failed.status), text_of(failed)]
        waiting = await task_of(client, "ask")
        canceled = await client.cancel_task(TaskIdParams(id=waiting.id))
        outcome["canceled"] = state(canceled.status)
        outcome["errors"] = [
            await error(client.cancel_task(TaskIdParams(id=waiting.id))),
            await error(client.get_task(TaskQueryParams(id="nobody's"))),
        ]
        outcome["config"] = await configure(client, (await task_of(client, "ask")).id, hook)
        client = client_of(streaming=True, hook=hook)
        outcome["streamed"] = []
        async for event in client.send_message(message("work")):
            outcome["streamed"].append(kind(event))  # the client goes on changing its task
            task, _ = event
        stored = await client.get_task(TaskQueryParams(id=task.id))
        outcome["artifact"] = "".join(part.root.text for part in stored.artifacts[0].parts)
        outcome["resumed"] = await resume(client_of(streaming=True))
    return outcome


async def configure(client: Any, task: str, hook: str) -> list[Any]:
    """Create and read a task's push configuration, which is all that this client supports."""
    config = PushNotificationConfig(id="mine", url=hook)
    created = await client.set_task_callback(
        TaskPushNotificationConfig(task_id=task, push_notification_config=config)
    )
    read = await client.get_task_callback(
        GetTaskPushNotificationConfigParams(id=task, push_notification_config_id="mine")
    )
    return [created.push_notification_config.id, read.push_notification_config.url == hook]


async def resume(client: Any) -> list[str]:
    """Drop a stream midway and resume it; return the kinds of its last events."""
    stream = client.send_message(message("hold"))
    task, _ = await stream.__anext__()
    await stream.aclose()
    kinds: list[str] = []
    async for event in client.resubscribe(TaskIdParams(id=task.id)):
        if not kinds:
            [_ async for _ in client.send_message(message("go"))]
        kinds.append(kind(event))
    return kinds[-2:]


def message(text: str, task: Any = None) -> Message:
    return Message(
        message_id=str(uuid.uuid4()),
        role=Role.user,
        parts=[Part(TextPart(text=text))],
        task_id=task and task.id,
        context_id=task and task.context_id,
    )


async def task_of(client: Any, text: str, task: Any = None) -> Any:
    ((answer, _),) = [event async for event in client.send_message(message(text, task))]
    return answer


async def error(call: Any) -> Any:
    try:
        await call
    except A2AClientHTTPError as problem:
        return problem.status_code
    except A2AClientJSONRPCError as problem:
        return ERRORS.get(problem.error.code, problem.error.code)
    return "none"


def text_of(task: Any) -> str:
    message = task.status.message
    return "".join(part.root.text for part in message.parts) if message else ""


def state(status: Any) -> str:
    return str(status.state.value).replace("-", "_")


def kind(event: Any) -> str:
    task, update = event
    if update is None:
        return state(task.status)
    return "artifact" if update.kind == "artifact-update" else state(update.status)
