"""Helpers for browser tests: a raw CDP client and a page that records events."""

from __future__ import annotations

import itertools
import json
from contextlib import ExitStack
from typing import Any
from urllib.parse import quote

import psutil
from websockets.sync.client import ClientConnection, connect

from agentdouble import Emulator
from agentdouble.sandbox.session import SandboxSession
from tests.agentdouble.calling import DataPlane, sessions_of

PATIENCE_S = 30


def data_url(html: str) -> str:
    return f"data:text/html,{quote(html)}"


class Client:
    """A CDP client that uses no library; use it as a context manager."""

    def __init__(self, url: str) -> None:
        self._numbers = itertools.count(1)
        self._stack = ExitStack()
        connection = connect(url, max_size=None, proxy=None)
        self.socket: ClientConnection = self._stack.enter_context(connection)
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def send(self, method: str, session: str | None = None, **params: Any) -> int:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        self.socket.send(
            json.dumps(message if session is None else {**message, "sessionId": session})
        )
        return number

    def call(self, method: str, session: str | None = None, **params: Any) -> Any:
        """Call a method and return its result or its error."""
        return self.answer(self.send(method, session, **params))

    def answer(self, number: int) -> Any:
        """Return the result or the error of a call already sent."""
        while True:
            for message in self.events:
                if message.get("id") == number:
                    self.events.remove(message)
                    return message.get("result", message.get("error"))
            self.events.append(json.loads(self.socket.recv(PATIENCE_S)))

    def wait_for(self, method: str) -> dict[str, Any]:
        """Return the next event with that name."""
        while True:
            for event in self.events:
                if event.get("method") == method:
                    self.events.remove(event)
                    return event
            self.events.append(json.loads(self.socket.recv(PATIENCE_S)))

    def pages(self) -> list[str]:
        """Return the ids of the open pages."""
        targets = self.call("Target.getTargets")["targetInfos"]
        return [target["targetId"] for target in targets if target["type"] == "page"]

    def page(self) -> Page:
        """Return an open page, or open a new one."""
        targets = self.pages() or [self.call("Target.createTarget", url="about:blank")["targetId"]]
        return Page(self, targets[0])


class Page:
    """A page with one client attached."""

    def __init__(self, client: Client, target: str) -> None:
        self._client = client
        attached = client.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session: str = attached["sessionId"]
        client.call("Page.enable", self.session)

    def go(self, url: str) -> None:
        """Load a page."""
        self._client.events.clear()
        answer = self._client.call("Page.navigate", self.session, url=url)
        assert "errorText" not in answer, answer
        self._client.wait_for("Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self._client.call(
            "Runtime.evaluate",
            self.session,
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        return answer["result"].get("value")


def client_of(plane: DataPlane) -> Client:
    return Client(plane.get("/v1/browser/info").json()["data"]["cdp_url"])


def session_of(double: Emulator, plane: DataPlane) -> SandboxSession:
    name = plane.query["faasInstanceName"]
    return next(session for session in sessions_of(double).living() if session.id == name)


def processes_of(double: Emulator, plane: DataPlane) -> list[psutil.Process]:
    """Return the browser's processes, the main process first."""
    browser = session_of(double, plane).processes._browser.process
    assert browser is not None
    first = psutil.Process(browser.pid)
    return [first, *first.children(recursive=True)]
