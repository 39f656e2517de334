"""The agents page: conversations in each of the three protocols."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from agentdouble import A2AApp, Emulator, SimpleApp
from tests.agentdouble.api_server.wire import AGENTS, generalised
from tests.console.driving import go, run_turn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from playwright.sync_api import Page

pytestmark = pytest.mark.once

HOSTILE = """<img src=x onerror="acted = 1"><script>acted = 2</script><a href="javascript:acted = 3">x</a>"""
V1 = {"A2A-Version": "1.0"}


def _streaming() -> SimpleApp:
    app = SimpleApp("parts")

    @app.entrypoint
    async def run(payload: Mapping[str, Any], headers: Mapping[str, str]) -> AsyncIterator[str]:
        for word in payload["prompt"].split():
            yield f"{word} of {headers['user_id']}; "
        if "fail" in payload["prompt"]:
            raise RuntimeError("no more")

    return app


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    """A double with the tests' agents and an application of each other kind."""
    apps = (_streaming(), A2AApp("told", runner="scripted"))
    with Emulator(*apps, agents=AGENTS, console=True, pool_size=0) as double:
        yield double


def say(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Message").fill(text)
    page.keyboard.press("Enter")


def has_ended(name: str) -> bool:
    """Return whether a waiting run was cancelled, and release its thread."""
    scripted = sys.modules["scripted"]
    ended = scripted.ended[name].wait(15)
    scripted.go[name].set()
    return bool(ended)


def sessions(double: Emulator, user: str) -> Any:
    """Return a user's sessions with their histories, oldest first."""
    path = f"{double.url}/apps/scripted/users/{user}/sessions"
    listed = sorted(httpx.get(path).json(), key=lambda session: session["lastUpdateTime"])
    return [httpx.get(f"{path}/{session['id']}").json() for session in listed]


def test_a_turn_by_keyboard(opened: Page, double: Emulator) -> None:
    """The address restores it, and the history equals that of a client's turn."""
    order = json.dumps({"do": "tool"})
    opened.get_by_role("link", name="Agents").press("Enter")
    opened.get_by_role("link", name="scripted").wait_for()
    opened.keyboard.press("j")
    while "scripted" not in (opened.evaluate("() => document.activeElement.textContent")):
        opened.keyboard.press("j")
    opened.keyboard.press("Enter")
    opened.get_by_text("Send a message.").wait_for()
    opened.keyboard.type(order)
    opened.keyboard.press("Enter")
    log = opened.get_by_role("log", name="Conversation")
    log.get_by_text("final").wait_for()
    log.get_by_text("add answers").press("Enter")
    log.get_by_text('"sum": 1').wait_for()
    opened.reload()
    log.get_by_text("calls add").wait_for()
    log.get_by_role("link", name="request").press("Enter")
    opened.get_by_role("heading", name="/run_sse").wait_for()

    own = sessions(double, "console")[0]
    run_turn(double, "scripted", own["id"], order)
    assert generalised(own) == {**generalised(sessions(double, "ann")[0]), "userId": "console"}


def test_every_way_of_answering_looks_the_same(opened: Page) -> None:
    """Increments are joined, and an agent's text cannot act on the page."""
    go(opened, "/agents/app/scripted/ann")
    opened.get_by_text("Send a message.").wait_for()
    log = opened.get_by_role("log", name="Conversation")
    say(opened, json.dumps({"do": "remember", "a": HOSTILE}))
    opened.get_by_label("State of the session").get_by_text("onerror").wait_for()
    for number, way in enumerate(("increments", "events", "whole")):
        opened.get_by_role("combobox", name="Answer").select_option(way)
        say(opened, json.dumps({"do": "say", "texts": ["one ", "two ", "three"]}))
        log.get_by_text("one two three", exact=True).nth(number).wait_for()
        opened.get_by_role("button", name="Send").and_(opened.locator(":enabled")).wait_for()

    assert opened.evaluate("() => window.acted") is None


def test_stop_cancels_the_run(opened: Page) -> None:
    """The conversation can go on."""
    go(opened, "/agents/app/scripted/ann")
    opened.get_by_text("Send a message.").wait_for()
    say(opened, json.dumps({"do": "wait", "name": "stopped"}))
    opened.get_by_text("begun", exact=True).wait_for()

    opened.get_by_role("button", name="Stop").click()

    opened.get_by_text("Stopped.").wait_for()
    assert has_ended("stopped")
    say(opened, json.dumps({"do": "fail", "texts": ["a start"], "message": "not today"}))
    opened.get_by_text("RuntimeError: not today").wait_for()


def test_sessions_are_opened_and_deleted(opened: Page, double: Emulator) -> None:
    """Each shows its artifacts. Deletion asks for confirmation."""
    path = f"{double.url}/apps/scripted/users/ann/sessions"
    httpx.post(f"{path}/older", json={"before": 1})
    go(opened, "/agents/app/scripted/ann/older")
    opened.get_by_label("State of the session").get_by_text('"before": 1').wait_for()
    say(opened, json.dumps({"do": "files"}))
    opened.get_by_role("button", name="a.txt").wait_for()
    opened.get_by_role("button", name="user:b").click()
    opened.get_by_text("mine", exact=True).wait_for()
    opened.get_by_role("button", name="New").click()
    opened.get_by_role("link", name="older").click()
    opened.get_by_role("button", name="Delete older").click()
    opened.get_by_role("dialog").get_by_role("button", name="Delete").click()

    opened.get_by_text("No session yet").wait_for()
    assert [] == httpx.get(path).json()


def test_an_application_is_invoked(opened: Page, double: Emulator) -> None:
    """Chunks are joined, and a reload shows the turns of all clients."""
    headers = {"user_id": "ann", "session_id": "s0"}
    httpx.post(f"{double.url}/invoke", json={"prompt": "before"}, headers=headers, timeout=60)
    opened.get_by_role("link", name="/invoke").wait_for()
    go(opened, "/agents/invoke/parts/ann/s0")
    log = opened.get_by_role("log", name="Conversation")
    log.get_by_text("before of ann;").wait_for()

    say(opened, "one two fail")

    log.get_by_text("one of ann; two of ann; fail of ann;").wait_for()
    log.get_by_text("no more").wait_for()
    opened.reload()
    log.get_by_text("one of ann; two of ann; fail of ann;").wait_for()
    log.get_by_role("link", name="request").nth(1).click()
    opened.get_by_role("heading", name="/invoke").wait_for()


def test_a2a_tasks(opened: Page, double: Emulator) -> None:
    """The page shows states and artifact, keeps the context in its URL and cancels a task."""
    go(opened, "/agents/a2a/told")
    opened.get_by_text("Send a message.").wait_for()
    say(opened, json.dumps({"do": "say", "texts": ["one ", "two ", "three"]}))
    log = opened.get_by_role("log", name="Conversation")
    log.get_by_text("The task is completed.").wait_for()
    opened.get_by_label("Tasks").get_by_text("artifact").wait_for()
    opened.reload()
    log.get_by_text("one two three", exact=True).wait_for()
    body = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
    tasks = httpx.post(double.url, json=body, headers=V1).json()["result"]["tasks"]
    assert [opened.url.rpartition("/")[2]] == [task["contextId"] for task in tasks]

    say(opened, json.dumps({"do": "wait", "name": "cancelled"}))
    opened.get_by_role("button", name="Cancel the task").click()

    log.get_by_text("The task is canceled.").wait_for()
    assert has_ended("cancelled")
