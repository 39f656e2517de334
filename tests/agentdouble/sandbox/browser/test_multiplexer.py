from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agentdouble.sandbox.browser.multiplexer import Client, Message, Multiplexer

pytestmark = pytest.mark.once


class FakeBrowser:
    """Answers the multiplexer's own calls and records what clients send."""

    def __init__(self) -> None:
        self.multiplexer = Multiplexer(self.hear)
        self.heard: list[Message] = []
        self.sessions = 0

    def hear(self, message: Message) -> None:
        if message["method"] == "Target.attachToBrowserTarget":
            self.sessions += 1
            self.answer(message, {"sessionId": f"ROOT-{self.sessions}"})
        elif message["method"] == "Target.detachFromTarget" and "sessionId" not in message:
            self.heard.append(message)
            self.answer(message, {})
        else:
            self.heard.append(message)

    def answer(self, message: Message, result: Message) -> None:
        answer = {"id": message["id"], "result": result}
        if "sessionId" in message:
            answer["sessionId"] = message["sessionId"]
        self.multiplexer.from_browser(answer)

    def say(self, method: str, session: str | None = None, **params: Any) -> None:
        event: Message = {"method": method, "params": params}
        self.multiplexer.from_browser(event if session is None else {**event, "sessionId": session})

    async def client(self) -> tuple[Client, list[Message]]:
        got: list[Message] = []
        return await self.multiplexer.join(got.append), got


def driven(script: Callable[[FakeBrowser], Awaitable[None]]) -> None:
    async def drive() -> None:
        await script(FakeBrowser())

    asyncio.run(drive())


def test_clients_with_equal_call_ids_get_their_own_answers() -> None:
    """Clients see neither each other's answers nor internal ids."""

    async def script(browser: FakeBrowser) -> None:
        (client, one_got), (two, two_got) = await browser.client(), await browser.client()
        browser.multiplexer.from_client(client, {"id": 1, "method": "Browser.getVersion"})
        browser.multiplexer.from_client(two, {"id": 1, "method": "Browser.getVersion"})
        first, second = browser.heard

        browser.answer(second, {"of": "two"})
        browser.answer(first, {"of": "one"})

        assert ["ROOT-1", "ROOT-2"] == [first["sessionId"], second["sessionId"]]
        assert first["id"] != second["id"]
        assert [{"id": 1, "result": {"of": "one"}}] == one_got
        assert [{"id": 1, "result": {"of": "two"}}] == two_got

    driven(script)


def test_a_child_session_belongs_to_its_parents_client() -> None:
    """Frames and workers attach through their page's session at any depth."""

    async def script(browser: FakeBrowser) -> None:
        (first, one_got), (_, two_got) = await browser.client(), await browser.client()
        browser.say("Target.attachedToTarget", "ROOT-1", sessionId="PAGE")
        browser.say("Target.attachedToTarget", "PAGE", sessionId="FRAME")

        browser.say("Page.loadEventFired", "FRAME")
        browser.multiplexer.from_client(
            first, {"id": 5, "method": "Page.enable", "sessionId": "FRAME"}
        )

        loaded = {"method": "Page.loadEventFired", "params": {}, "sessionId": "FRAME"}
        assert loaded == one_got[-1]
        assert "FRAME" == browser.heard[-1]["sessionId"]
        assert [] == two_got

    driven(script)


def test_a_client_that_leaves_is_detached_and_gets_nothing() -> None:
    """Pending answers and events of its sessions are dropped."""

    async def script(browser: FakeBrowser) -> None:
        client, one_got = await browser.client()
        browser.multiplexer.from_client(client, {"id": 1, "method": "Target.attachToTarget"})
        request = browser.heard[-1]

        await browser.multiplexer.leave(client)
        detached = browser.heard[-1]
        browser.answer(request, {"sessionId": "LATE"})
        browser.say("Page.loadEventFired", "LATE")
        browser.say("Target.targetCreated", "ROOT-1")

        assert ("Target.detachFromTarget", {"sessionId": "ROOT-1"}) == (
            detached["method"],
            detached["params"],
        )
        assert [] == one_got

    driven(script)


@pytest.mark.parametrize(
    ("message", "number", "text"),
    [
        ([], None, "Message must be an object with an integer 'id' and a string 'method'"),
        ({"id": 1}, 1, "Message must be an object with an integer 'id' and a string 'method'"),
        ({"id": 1, "method": "A.b", "params": []}, 1, "'params' must be an object"),
    ],
)
def test_an_invalid_call_is_answered_without_the_browser(
    message: Any, number: int | None, text: str
) -> None:
    """The client's connection stays open."""

    async def script(browser: FakeBrowser) -> None:
        client, one_got = await browser.client()

        browser.multiplexer.from_client(client, message)

        assert [{"id": number, "error": {"code": -32600, "message": text}}] == one_got
        assert [] == browser.heard

    driven(script)
