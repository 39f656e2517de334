"""A conversation of a client of the 0.3 era, run by a Python that has a2a-sdk 0.3.

The arguments are a URL, a transport, the URL of a receiver and the file of the outcome.
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from pathlib import Path
from typing import Any

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types import (
    Message,
    Part,
    PushNotificationConfig,
    Role,
    TaskIdParams,
    TaskQueryParams,
    TextPart,
)


async def converse(url: str, transport: str, hook: str) -> dict[str, Any]:
    """Have the whole conversation; return what came of each part of it."""
    found: dict[str, Any] = {}
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
        found["message"] = said(await task_of(client, "hello"))
        asked = await task_of(client, "ask")
        found["asked"] = [state(asked.status), said(asked)]
        done = await task_of(client, "this", asked)
        found["continued"] = [done.id == asked.id, state(done.status), said(done)]
        failed = await task_of(client, "fail")
        found["failed"] = [state(failed.status), said(failed)]
        waiting = await task_of(client, "ask")
        canceled = await client.cancel_task(TaskIdParams(id=waiting.id))
        found["canceled"] = state(canceled.status)
        found["errors"] = [
            await error(client.cancel_task(TaskIdParams(id=waiting.id))),
            await error(client.get_task(TaskQueryParams(id="nobody's"))),
        ]
        client = client_of(streaming=True, hook=hook)
        found["streamed"] = []
        async for event in client.send_message(message("work")):
            found["streamed"].append(kind(event))  # the client goes on changing its task
            task, _ = event
        kept = await client.get_task(TaskQueryParams(id=task.id))
        found["artifact"] = "".join(part.root.text for part in kept.artifacts[0].parts)
        found["resumed"] = await resume(client_of(streaming=True))
    return found


async def resume(client: Any) -> list[str]:
    """Drop a stream in its midst and take it up again; return the kinds of its last events."""
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


async def error(call: Any) -> str:
    try:
        await call
    except A2AClientError as problem:
        return type(problem).__name__
    return "none"


def said(task: Any) -> str:
    return "".join(part.root.text for part in task.status.message.parts)


def state(status: Any) -> str:
    return str(status.state.value)


def kind(event: Any) -> str:
    task, update = event
    if update is None:
        return state(task.status)
    return "artifact" if update.kind == "artifact-update" else state(update.status)


if __name__ == "__main__":
    outcome = asyncio.run(converse(*sys.argv[1:4]))
    Path(sys.argv[4]).write_text(json.dumps(outcome))
