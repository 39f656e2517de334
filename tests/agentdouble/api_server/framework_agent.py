"""An agent whose framework has its own runner and whose events are dicts.

It answers with JSON about its session; the message's text selects further actions.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from typing import Any

from agentdouble.agents.agent import Agent
from agentdouble.agents.framework import (
    Framework,
    FrameworkEvent,
    FrameworkHost,
    RunEvent,
    RunInput,
    SessionRecord,
)

Event = dict[str, Any]
NO_ACTIONS: Event = {
    "stateDelta": {},
    "artifactDelta": {},
    "requestedAuthConfigs": {},
    "requestedToolConfirmations": {},
}
started: defaultdict[str, threading.Event] = defaultdict(threading.Event)
go: defaultdict[str, threading.Event] = defaultdict(threading.Event)
escaped: dict[str, FrameworkHost] = {}
closed: list[str] = []
_ids = itertools.count()


class Dicts:
    """The framework's side of the application."""

    def __init__(self, before: Framework | None) -> None:
        self.parsed = 0
        self.remembered: list[str] = []

    def parse(self, event: bytes) -> Event:
        self.parsed += 1
        parsed: Event = json.loads(event)
        return parsed

    async def run(self, run_input: RunInput, host: FrameworkHost) -> AsyncIterator[RunEvent]:
        app, user, id_ = "dicts", run_input.user, run_input.session
        session = await host.session(app, user, id_)
        assert session is not None
        text = ((run_input.message or {}).get("parts") or [{}])[0].get("text", "")
        _append(host, session, "user", text, run_input.state_delta or {})
        try:
            more = await self._do(text, host, session)
        except asyncio.CancelledError:
            _append(host, session, "dicts", f"aborted {host.aborted.is_set()}", {})
            raise
        if run_input.streaming:
            increment = {**_event("dicts", "..."), "partial": True}
            yield RunEvent(json.dumps(increment).encode(), artifacts=False)
        facts = {
            "events": [
                item["content"]["parts"][0]["text"] for item in session.events if "content" in item
            ],
            "count": len(session.events),
            "state": session.state,
            "parsed": self.parsed,
            "remembered": self.remembered,
            **more,
        }
        event = _append(host, session, "dicts", json.dumps(facts), {"turns": len(session.events)})
        yield RunEvent(event.json, artifacts=False)

    async def _do(
        self, text: str, host: FrameworkHost, session: SessionRecord
    ) -> Mapping[str, Any]:
        kind, _, name = text.partition(" ")
        if kind == "wait":
            started[name].set()
            await asyncio.to_thread(go[name].wait, 30)
        elif kind == "forever":
            started[name].set()
            await asyncio.sleep(300)
        elif kind == "raise":
            raise RuntimeError(name)
        elif kind == "escape":
            escaped[name] = host
        elif kind == "others":
            return await _others(host, session)
        return {}

    async def add_session_to_memory(self, session: SessionRecord) -> None:
        self.remembered = [event["author"] for event in session.events]

    def reset(self) -> None:
        self.remembered = []

    async def close(self) -> None:
        closed.append("dicts")


async def _others(host: FrameworkHost, session: SessionRecord) -> Mapping[str, Any]:
    """Use other sessions and artifacts."""
    app, user = session.app, session.user
    created = await host.create(app, user, "other", {"a": 1})
    event = _stored(_event("dicts", "elsewhere"), {"b": 2})
    host.append(app, user, created.id, event)
    other = await host.session(app, user, created.id)
    listed = [session.id for session in await host.sessions(app, user)]
    by_user = [session.id for session in await host.sessions(app, None) if session.user == user]
    await host.delete(app, user, created.id)
    files = host.artifacts(app, user, session.id)
    versions = [await files.save("f", {"text": text}, {"n": 1}) for text in ("old", "new")]
    loaded = await files.load("f", 0)
    described = [version["customMetadata"] for version in await files.versions("f")]
    names = list(await files.names())
    await files.delete("f")
    return {
        "other": other and [other.state, len(other.events)],
        "listed": sorted(listed),
        "everyone": sorted(by_user),
        "gone": await host.session(app, user, created.id) is None,
        "files": [
            versions,
            loaded and json.loads(loaded),
            described,
            names,
            list(await files.names()),
        ],
    }


def _append(
    host: FrameworkHost, session: SessionRecord, author: str, text: str, delta: Mapping[str, Any]
) -> FrameworkEvent:
    stored = _stored(_event(author, text), delta)
    host.append(session.app, session.user, session.id, stored)
    return stored


def _event(author: str, text: str) -> Event:
    content = {"role": author, "parts": [{"text": text}]}
    return {"author": author, "content": content, "id": f"event-{next(_ids)}"}


def _stored(event: Event, delta: Mapping[str, Any]) -> FrameworkEvent:
    full = {**event, "actions": {**NO_ACTIONS, "stateDelta": dict(delta)}, "timestamp": 1.0}
    text = json.dumps(full).encode()
    private = json.dumps({**full, "secret": True}).encode() if "secret" in text.decode() else b""
    return FrameworkEvent(full, event["id"], 1.0, text, delta, private)


async def _unused(message: object, session: object) -> AsyncIterator[str]:
    yield "unused"


root_agent = Agent("dicts", _unused, "An agent of a framework", open=Dicts)
