"""One browser shared by several clients of the Chrome DevTools Protocol (CDP).

The browser has one pipe, and a client on the pipe would see everything. So each client gets its own
session of the browser target. Messages that a client sends without a session go to that session.
Events reach only the client that owns their session. This module does no input or output.

https://chromedevtools.github.io/devtools-protocol/tot/Target/
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
Deliver = Callable[[Message], None]

_INVALID_REQUEST = -32600
_NO_SUCH_SESSION = -32001


class CallFailedError(Exception):
    """The browser has answered a call with an error."""


@dataclass(eq=False)
class Client:
    """One client: its own session of the browser, and the sessions created through it."""

    deliver: Deliver
    root: str | None = None
    sessions: set[str] = field(default_factory=set)
    disconnected: bool = False


@dataclass(frozen=True)
class _Call:
    """A pending call: the client that made it, and the client's number for it."""

    client: Client
    number: int
    method: str


class Multiplexer:
    """Passes messages between one browser and its clients."""

    def __init__(self, send: Deliver) -> None:
        self._send = send
        self._numbers = itertools.count(1)
        self._calls: dict[int, _Call] = {}
        self._own: dict[int, asyncio.Future[Message]] = {}
        self._owners: dict[str, Client] = {}

    async def call(self, method: str, **params: Any) -> Message:
        """Call the browser itself; raise CallFailedError if it refuses."""
        number = next(self._numbers)
        answer = self._own[number] = asyncio.get_running_loop().create_future()
        self._send({"id": number, "method": method, "params": params})
        message = await answer
        if "error" in message:
            raise CallFailedError(f"{method}: {message['error'].get('message')}")
        result: Message = message["result"]
        return result

    async def join(self, deliver: Deliver) -> Client:
        """Give a new client its own session; call ``deliver`` with the messages for the client."""
        client = Client(deliver)
        result = await self.call("Target.attachToBrowserTarget")
        client.root = result["sessionId"]
        self._adopt(client, client.root)
        return client

    async def leave(self, client: Client) -> None:
        """End a client's sessions, and with them the browser contexts that the client made."""
        client.disconnected = True
        for session in client.sessions:
            self._owners.pop(session, None)
        await self.call("Target.detachFromTarget", sessionId=client.root)

    def from_client(self, client: Client, message: Any) -> None:
        """Pass a client's message on to the browser, or answer it with a refusal."""
        refusal = _refusal(client, message)
        if refusal is not None:
            client.deliver(refusal)
            return
        number = next(self._numbers)
        self._calls[number] = _Call(client, message["id"], message["method"])
        self._send(
            {
                **message,
                "id": number,
                "sessionId": message.get("sessionId") or client.root,
                "params": _bound_to_client(message),
            }
        )

    def from_browser(self, message: Message) -> None:
        """Deliver an answer to its caller, and an event to the client that owns its session."""
        number = message.get("id")
        if number is None:
            self._event(message)
        elif number in self._own:
            future = self._own.pop(number)
            if not future.done():
                future.set_result(message)
        elif number in self._calls:
            self._answer(self._calls.pop(number), message)

    def _answer(self, call: _Call, message: Message) -> None:
        session = message.get("result", {}).get("sessionId")
        if call.method.startswith("Target.attachTo") and session is not None:
            self._adopt(call.client, session)
        self._deliver(call.client, {**message, "id": call.number})

    def _event(self, message: Message) -> None:
        client = self._owners.get(message.get("sessionId", ""))
        if client is None:  # an event of the pipe itself, or of a disconnected client
            return
        session = message.get("params", {}).get("sessionId")
        if message["method"] == "Target.attachedToTarget":
            self._adopt(client, session)
        elif message["method"] == "Target.detachedFromTarget":
            client.sessions.discard(session)
            self._owners.pop(session, None)
        self._deliver(client, message)

    def _adopt(self, client: Client, session: str) -> None:
        if not client.disconnected:
            client.sessions.add(session)
            self._owners[session] = client

    def _deliver(self, client: Client, message: Message) -> None:
        if client.disconnected:
            return
        if message.get("sessionId") == client.root:
            message = {key: value for key, value in message.items() if key != "sessionId"}
        client.deliver(message)


def _refusal(client: Client, message: Any) -> Message | None:
    """Return the answer to a message that must not reach the browser, else None."""
    number = message.get("id") if isinstance(message, dict) else None
    if type(number) is not int or not isinstance(message.get("method"), str):
        text = "Message must be an object with an integer 'id' and a string 'method'"
        return _error(number if type(number) is int else None, _INVALID_REQUEST, text)
    if not isinstance(message.get("params", {}), dict):
        return _error(number, _INVALID_REQUEST, "'params' must be an object")
    session = message.get("sessionId")
    if session is not None and session not in client.sessions:
        refusal = _error(number, _NO_SUCH_SESSION, "Session with given id not found.")
        return {**refusal, "sessionId": session}
    return None


def _error(number: int | None, code: int, text: str) -> Message:
    return {"id": number, "error": {"code": code, "message": text}}


def _bound_to_client(message: Message) -> Message:
    """Return a call's parameters; make a new browser context end with its client."""
    params: Message = message.get("params", {})
    if message["method"] == "Target.createBrowserContext":
        return {**params, "disposeOnDetach": True}
    return params
