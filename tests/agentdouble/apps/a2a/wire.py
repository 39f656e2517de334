"""A2A by hand: JSON-RPC and REST over httpx."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx

from agentdouble import A2AApp

T = TypeVar("T")

BOUND_S = 60.0
V1 = {"A2A-Version": "1.0"}


def message(text: str = "hello", **more: Any) -> dict[str, Any]:
    """Return the parameters of SendMessage."""
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": text}], **more}
    return {"message": message}


def request(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(params)}


class Wire:
    """Calls one application."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.http = client

    async def rpc(self, method: str, params: Mapping[str, Any], **headers: str) -> dict[str, Any]:
        """Return the whole JSON-RPC answer."""
        answer = await self.http.post("/", json=request(method, params), headers={**V1, **headers})
        assert 200 == answer.status_code, answer.text
        body: dict[str, Any] = answer.json()
        return body

    async def send(self, text: str = "hello", **more: Any) -> dict[str, Any]:
        """Send a message; return its result: ``task``, ``message`` or ``error``."""
        answer = await self.rpc("SendMessage", message(text, **more))
        result: dict[str, Any] = answer.get("result") or {"error": answer["error"]}
        return result

    async def stream(self, text: str = "hello", **more: Any) -> list[dict[str, Any]]:
        """Send a message; return every event of the stream, an error's JSON included."""
        body = request("SendStreamingMessage", message(text, **more))
        answer = await self.http.post("/", json=body, headers=V1)
        if answer.headers["content-type"].startswith("application/json"):
            return [answer.json()]
        lines = [line for line in answer.text.splitlines() if line.startswith("data: ")]
        events = [json.loads(line.removeprefix("data: ")) for line in lines]
        return [event.get("result", event) for event in events]

    async def task(self, id_: str) -> dict[str, Any]:
        """Return a task as stored."""
        answer = await self.rpc("GetTask", {"id": id_})
        result: dict[str, Any] = answer.get("result") or answer
        return result


@asynccontextmanager
async def served(app: A2AApp) -> AsyncIterator[Wire]:
    """Serve an application in process, with separate loops for its executors."""
    async with app.lifespan():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield Wire(client)


def talk(app: A2AApp, conversation: Callable[[Wire], Awaitable[T]], bound_s: float = BOUND_S) -> T:
    """Run a conversation with an application, with a timeout."""

    async def bounded() -> T:
        async with served(app) as wire:
            return await asyncio.wait_for(conversation(wire), bound_s)

    return asyncio.run(bounded())


def reply_of(task: Mapping[str, Any]) -> str:
    """Return the text of the message in a task's status."""
    parts = task["status"].get("message", {}).get("parts", [])
    return "".join(part.get("text", "") for part in parts)


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """Return the kinds of a stream's events, with short names for states."""
    return [_kind(event) for event in events]


def _kind(event: Mapping[str, Any]) -> str:
    (kind,) = event if "error" not in event else ("error",)
    if kind in ("task", "statusUpdate"):
        return str(event[kind]["status"]["state"]).removeprefix("TASK_STATE_").lower()
    return str(kind)
