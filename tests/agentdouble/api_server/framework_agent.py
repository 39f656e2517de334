"""An agent whose framework has its own runner, and whose events are dicts.

It answers with JSON of what it sees. The text of a message says what it does meanwhile.
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
    Host,
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
begun: defaultdict[str, threading.Event] = defaultdict(threading.Event)
go: defaultdict[str, threading.Event] = defaultdict(threading.Event)
escaped: dict[str, Host] = {}
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

    async def run(self, asked: RunInput, host: Host) -> AsyncIterator[RunEvent]:
        app, user, id_ = "dicts", asked.user, asked.session
        session = await host.session(app, user, id_)
        assert session is not None
        text = ((asked.message or {}).get("parts") or [{}])[0].get("text", "")
        _append(host, session, "user", text, asked.state_delta or {})
        try:
            more = await self._do(text, host, session)
        except asyncio.CancelledError:
            _append(host, session, "dicts", f"aborted {host.aborted.is_set()}", {})
            raise
        if asked.streaming:
            increment = {**_event("dicts", "..."), "partial": True}
            yield RunEvent(json.dumps(increment).encode(), artifacts=False)
        seen = {
            "events": [
                one["content"]["parts"][0]["text"] for one in session.events if "content" in one
            ],
            "count": len(session.events),
            "state": session.state,
            "parsed": self.parsed,
            "remembered": self.remembered,
            **more,
        }
        said = _append(host, session, "dicts", json.dumps(seen), {"turns": len(session.events)})
        yield RunEvent(said.json, artifacts=False)

    async def _do(self, text: str, host: Host, session: SessionRecord) -> Mapping[str, Any]:
        what, _, name = text.partition(" ")
        if what == "wait":
            begun[name].set()
            await asyncio.to_thread(go[name].wait, 30)
        elif what == "forever":
            begun[name].set()
            await asyncio.sleep(300)
        elif what == "raise":
            raise RuntimeError(name)
        elif what == "escape":
            escaped[name] = host
        elif what == "others":
            return await _others(host, session)
        return {}

    async def add_session_to_memory(self, session: SessionRecord) -> None:
        self.remembered = [one["author"] for one in session.events]

    def reset(self) -> None:
        self.remembered = []

    async def close(self) -> None:
        closed.append("dicts")


async def _others(host: Host, session: SessionRecord) -> Mapping[str, Any]:
    """Use other sessions and artifacts."""
    app, user = session.app, session.user
    made = await host.create(app, user, "other", {"a": 1})
    event = _stored(_event("dicts", "elsewhere"), {"b": 2})
    host.append(app, user, made.id, event)
    other = await host.session(app, user, made.id)
    listed = [one.id for one in await host.sessions(app, user)]
    everyone = [one.id for one in await host.sessions(app, None) if one.user == user]
    await host.delete(app, user, made.id)
    files = host.artifacts(app, user, session.id)
    versions = [await files.save("f", {"text": text}, {"n": 1}) for text in ("old", "new")]
    loaded = await files.load("f", 0)
    described = [one["customMetadata"] for one in await files.versions("f")]
    names = list(await files.names())
    await files.delete("f")
    return {
        "other": other and [other.state, len(other.events)],
        "listed": sorted(listed),
        "everyone": sorted(everyone),
        "gone": await host.session(app, user, made.id) is None,
        "files": [
            versions,
            loaded and json.loads(loaded),
            described,
            names,
            list(await files.names()),
        ],
    }


def _append(
    host: Host, session: SessionRecord, author: str, text: str, delta: Mapping[str, Any]
) -> FrameworkEvent:
    stored = _stored(_event(author, text), delta)
    host.append(session.app, session.user, session.id, stored)
    return stored


def _event(author: str, text: str) -> Event:
    content = {"role": author, "parts": [{"text": text}]}
    return {"author": author, "content": content, "id": f"event-{next(_ids)}"}


def _stored(event: Event, delta: Mapping[str, Any]) -> FrameworkEvent:
    whole = {**event, "actions": {**NO_ACTIONS, "stateDelta": dict(delta)}, "timestamp": 1.0}
    shown = json.dumps(whole).encode()
    private = json.dumps({**whole, "secret": True}).encode() if "secret" in shown.decode() else b""
    return FrameworkEvent(whole, event["id"], 1.0, shown, delta, private)


async def _unused(message: object, session: object) -> AsyncIterator[str]:
    yield "unused"


root_agent = Agent("dicts", _unused, "An agent of a framework", open=Dicts)
